from hypothesis import settings

# No deadline: how long a property takes says how busy the machine is, not whether the property holds.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
