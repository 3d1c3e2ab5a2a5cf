"""Evidence beside voices: turns in transcripts, what is known of people, anything else."""
