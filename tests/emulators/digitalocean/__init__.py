"""A stateful DigitalOcean on loopback, faithful to the published description and to its own bad habits."""

from tests.emulators.digitalocean.emulator import Emulator

__all__ = ["Emulator"]
