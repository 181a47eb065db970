// Facts of this machine: boot id, name, processors, memory, network interfaces.
//
// Blocking, for microseconds. Nothing is cached.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::os {

/// Processes with the same one share a kernel since its boot, its files and its sockets: containers
/// of one machine are hosts of their own. `<boot id>/mnt:[N]/net:[N]`.
std::string BootId();
std::string HostName();
/// The name of the user that this process runs as; "uid1000" where the system has no name for it.
std::string UserName();
/// Processors this process may run on, bounded by a cgroup's CPU quota (rounded up), at least one.
std::uint32_t UsableCpus();

struct LocalInterface {
  std::string name;     // "eth1"
  std::string address;  // numeric
};
/// The interface whose address packets to `hosts` leave from: the first host that has a route
/// decides, but loopback is chosen only when every host is this machine's loopback (or there is
/// none). Numeric addresses only: no name is looked up.
LocalInterface InterfaceTo(const std::vector<std::string>& hosts);
/// The numeric address of the interface of this name, its first of IPv4, else of IPv6 that is not
/// of the link alone; empty where it has none.
std::string AddressOf(const std::string& interface);
/// The numeric addresses of all interfaces, at most 32, without those of one link alone.
std::vector<std::string> LocalAddresses();

}  // namespace troupe::os
