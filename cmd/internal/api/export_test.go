package api

import "net"

// On has a server serve on another listener, before it runs.
func (s *Server) On(l net.Listener) {
	_ = s.listener.Close()
	s.listener = l
}
