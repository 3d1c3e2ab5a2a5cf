"""One file a kind of calibration; `calibration/table.py` lists them."""
