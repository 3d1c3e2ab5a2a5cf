"""From sound files to what a recognizer wants to hear of every side."""
