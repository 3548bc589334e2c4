"""The grants of the token endpoint, one file each; `oauth_ext.features` lists those that are on."""
