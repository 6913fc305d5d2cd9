"""Speed, side by side with ESPnet's own classes; each prints one JSON line."""

import espnet_ext.quiet_import  # noqa: F401 - before ESPnet
