"""Test files that take longest, the longest first: seconds of computing, compiled code at hand.

`pytest --durations=0` tells; the order need not be exact. Not among them is test_memory.py: a
process that compiles holds more.
"""

SLOWEST = (
    "test_tutorials.py",
    "runs/test_linking.py",
    "test_cluster.py",
    "report/test_report.py",
    "test_api.py",
    "test_docs.py",
    "runs/test_watch.py",
    "runs/test_order.py",
    "adversary/test_caches.py",
    "sound/test_listening.py",
    "runs/test_arriving.py",
    "adversary/test_edges.py",
    "partitions/test_sampled_partitions.py",
    "recognizers/test_network.py",
    "runs/test_compare.py",
    "posterior/states/test_state_methods.py",
    "calibration/test_frequent_voices.py",
    "posterior/test_inference.py",
    "adversary/test_no_room.py",
    "cli/test_cli.py",
    "runs/test_linking_with_cues.py",
    "adversary/test_hostile_files.py",
    "calibration/test_learning.py",
    "measures/test_detection.py",
    "test_install.py",
    "measures/test_evaluation.py",
    "posterior/test_certified.py",
    "calibration/test_frequent_places.py",
    "worlds/test_voices.py",
)
