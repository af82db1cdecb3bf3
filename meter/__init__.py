"""The meter: drives load at one server and takes the times; standard library only, imports nothing of ours."""

METER_VERSION = "0.2.0"
METER_PLAN_VERSION = 2
METER_RECORD_VERSION = 2
