"""Nodes from engines that exist: ssh."""
