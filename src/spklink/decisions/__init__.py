"""What people heard and decided: an input of reports and of the review page."""
