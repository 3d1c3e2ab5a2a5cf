"""`python -m spklink` is `spklink`."""

from spklink.cli.app import main

if __name__ == "__main__":
    main()
