"""An overlay in virtual time: the routing core's decisions, modelled queues, links and costs."""
