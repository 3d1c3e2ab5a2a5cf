"""What turns the sound of a side into a vector, and two vectors into a score."""
