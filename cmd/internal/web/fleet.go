package web

var fleetPages []page
