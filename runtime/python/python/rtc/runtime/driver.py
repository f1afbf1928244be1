"""The active device: `triton.runtime.driver.active`."""

from ..backends.driver import Driver


class DriverConfig:
    """Holds the active driver."""

    def __init__(self):
        self.default = self.active = Driver()

    def set_active(self, driver: Driver) -> None:
        """Makes one of the drivers of `backends` the active one."""
        if not isinstance(driver, Driver):
            raise TypeError("rtc: only drivers of `triton.backends` can be active, not one of another compiler")
        self.active = driver

    def reset_active(self) -> None:
        """Makes the driver of GPUs the active one again."""
        self.active = self.default


driver = DriverConfig()
