"""The posterior of conversations with several states each: one file a method."""
