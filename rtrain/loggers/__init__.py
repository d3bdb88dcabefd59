"""What brings the metrics of runs to trackers: a file for each tracker."""
