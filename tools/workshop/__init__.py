"""Programs that measure abele itself, for those who change it. The wheel leaves them out."""
