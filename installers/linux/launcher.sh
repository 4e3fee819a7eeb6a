#!/bin/sh
# Sets the engine up if that is needed, then becomes what was asked for.
SHOAL_PACKAGE=deb exec "@HERE@/shoal-setup" launch @NAME@ "$@"
