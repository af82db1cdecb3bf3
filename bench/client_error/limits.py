"""What the load client must keep to be believed; a night's rules and its calibration hold it to the same bars."""

# The bars of the meter at 1,000 streams of 50 tokens a second on one core, held at every load.
ITL_P99_ERROR_KERNEL_MS, ITL_P99_ERROR_MS = 0.05, 0.3
TTFT_MEAN_ERROR_MS = 1.0
LIVE_SHARE = LOAD_SHARE = 0.99  # below, the measured load was not the requested one
# Of the window that a rate counts in: the times of two client hosts may be so far apart, and its ends with them.
CLOCK_SHARE = 0.001
CORE_SHARE = 0.7  # a core that is busier than this has delays in every tail
MERGED_LATE_SHARE = 0.005  # token events that lost their kernel stamp to one that was read with them, we being late
SERVER_LATE_SHARE = 1.0  # of the gap between two tokens: a server later than that was itself the limit
