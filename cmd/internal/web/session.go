package web

var sessionPages []page
