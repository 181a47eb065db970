#include "worker/devices/fabric.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "runtime/os/text.h"

namespace troupe::worker {
namespace {

constexpr std::size_t kInterfacesMax = 32;
constexpr std::size_t kPortsMax = 64;
constexpr std::size_t kGidsMax = 16;

std::vector<std::string> EntriesOf(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator each(folder, error), end; !error && each != end;
       each.increment(error)) {
    names.push_back(each->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

std::string LineOf(const std::string& path) {
  std::string text = os::ReadText(path).value_or("");
  return text.substr(0, text.find('\n'));
}

// "4: ACTIVE" and "ACTIVE" alike.
std::string AfterColon(const std::string& line) {
  const std::size_t colon = line.find(": ");
  return colon == std::string::npos ? line : line.substr(colon + 2);
}

// -1 means not known.
std::uint64_t NumberIn(const std::string& line) {
  std::int64_t number = 0;
  std::from_chars(line.data(), line.data() + line.size(), number);
  return number > 0 ? static_cast<std::uint64_t>(number) : 0;
}

// "100 Gb/sec (4X EDR)", "2.5 Gb/sec (1X SDR)".
void TakeRate(const std::string& line, placement::RdmaPort* port) {
  std::uint64_t whole = 0;
  std::uint64_t tenths = 0;
  const char* const end = line.data() + line.size();
  const auto [next, error] = std::from_chars(line.data(), end, whole);
  if (error == std::errc() && next != end && *next == '.') std::from_chars(next + 1, end, tenths);
  port->mbit_s = whole * 1000 + std::min<std::uint64_t>(tenths, 9) * 100;
  const std::size_t open = line.find('(');
  const std::size_t close = line.find(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return;
  port->width = line.substr(open + 1, close - open - 1);
}

// The interfaces by whose addresses a port is reached. RoCE has them by its GIDs, which VLANs add
// to.
std::vector<std::string> InterfacesOf(const std::string& device, const std::string& port) {
  std::vector<std::string> names;
  const std::string folder = device + "/ports/" + port + "/gid_attrs/ndevs/";
  for (std::size_t i = 0; i < kGidsMax; ++i) {
    const std::string name = LineOf(folder + std::to_string(i));
    if (!name.empty() && std::count(names.begin(), names.end(), name) == 0) names.push_back(name);
  }
  if (!names.empty()) return names;
  for (const std::string& name : EntriesOf(device + "/device/net")) {
    const std::uint64_t index = NumberIn(LineOf(device + "/device/net/" + name + "/dev_port"));
    if (std::to_string(index + 1) == port) names.push_back(name);
  }
  return names;
}

// "fe80000000000000" of "fe80:0000:0000:0000:0c42:a103:0065:2e6a": what a subnet manager gave.
std::string SubnetOf(const std::string& gid) {
  std::string prefix = gid.substr(0, std::min<std::size_t>(gid.size(), 19));
  std::erase(prefix, ':');
  return prefix.size() == 16 ? prefix : "";
}

placement::RdmaPort ReadPort(const std::string& device, const std::string& name,
                             const std::string& number, const Addresses& addresses) {
  const std::string folder = device + "/ports/" + number;
  placement::RdmaPort port;
  port.name = name + ":" + number;
  port.layer = LineOf(folder + "/link_layer");
  port.state = AfterColon(LineOf(folder + "/state"));
  TakeRate(LineOf(folder + "/rate"), &port);
  const std::vector<std::string> interfaces = InterfacesOf(device, number);
  if (!interfaces.empty()) port.interface = interfaces.front();
  if (port.layer == "InfiniBand") {
    const std::string subnet = SubnetOf(LineOf(folder + "/gids/0"));
    if (!subnet.empty()) port.networks.push_back(subnet);
    return port;
  }
  for (const std::string& interface : interfaces) {
    const auto found = addresses.find(interface);
    if (found == addresses.end()) continue;
    for (const std::string& address : found->second) {
      if (const std::string network = NetworkOf(address); !network.empty())
        port.networks.push_back(network);
    }
  }
  return port;
}

// Kernels from 5.12 on lend a GPU's memory to network cards themselves, with the driver's open
// modules.
bool LendsByDmaBuf(const std::string& root) {
  const std::string driver = LineOf(root + "/proc/driver/nvidia/version");
  if (driver.find("Open Kernel Module") == std::string::npos) return false;
  const std::string release = LineOf(root + "/proc/sys/kernel/osrelease");
  unsigned major = 0;
  unsigned minor = 0;
  const char* const end = release.data() + release.size();
  const auto [next, error] = std::from_chars(release.data(), end, major);
  if (error == std::errc() && next != end) std::from_chars(next + 1, end, minor);
  return std::pair(major, minor) >= std::pair(5u, 12u);
}

unsigned BitsOf(const sockaddr* mask) {
  unsigned bits = 0;
  const auto count = [&](const void* bytes, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
      bits +=
          static_cast<unsigned>(__builtin_popcount(static_cast<const unsigned char*>(bytes)[i]));
    }
  };
  if (mask == nullptr) return 0;
  if (mask->sa_family == AF_INET) {
    const auto& address = reinterpret_cast<const sockaddr_in*>(mask)->sin_addr;
    count(&address, sizeof address);
  } else if (mask->sa_family == AF_INET6) {
    const auto& address = reinterpret_cast<const sockaddr_in6*>(mask)->sin6_addr;
    count(&address, sizeof address);
  }
  return bits;
}

void TakeNames(const std::string& text, std::set<std::string>* names) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos && line[0] != '#') names->insert(line.substr(0, equals));
    begin = end + 1;
  }
}

}  // namespace

std::string NetworkOf(const std::string& address) {
  const std::size_t slash = address.find('/');
  if (slash == std::string::npos) return "";
  unsigned bits = 0;
  std::from_chars(address.data() + slash + 1, address.data() + address.size(), bits);
  const std::string host = address.substr(0, slash);
  const int family = host.find(':') == std::string::npos ? AF_INET : AF_INET6;
  unsigned char bytes[16] = {};
  if (inet_pton(family, host.c_str(), bytes) != 1) return "";
  for (unsigned i = 0; i < 16; ++i) {
    const unsigned kept = bits > i * 8 ? std::min(bits - i * 8, 8u) : 0;
    bytes[i] &= static_cast<unsigned char>(0xff00u >> kept);
  }
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(family, bytes, text, sizeof text);
  return text + std::string("/") + std::to_string(bits);
}

Addresses LocalAddresses() {
  Addresses addresses;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return addresses;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> guard(list, freeifaddrs);
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_LOOPBACK) != 0) continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const void* const bytes =
        family == AF_INET
            ? static_cast<const void*>(&reinterpret_cast<sockaddr_in*>(each->ifa_addr)->sin_addr)
            : &reinterpret_cast<sockaddr_in6*>(each->ifa_addr)->sin6_addr;
    char text[INET6_ADDRSTRLEN] = "";
    if (inet_ntop(family, bytes, text, sizeof text) == nullptr) continue;
    const std::string_view host(text);
    if (host.rfind("fe80:", 0) == 0 || host.rfind("169.254.", 0) == 0) continue;
    addresses[each->ifa_name].push_back(text + std::string("/") +
                                        std::to_string(BitsOf(each->ifa_netmask)));
  }
  return addresses;
}

placement::Fabric ReadFabric(const std::string& root, const Addresses& addresses) {
  placement::Fabric fabric;
  const std::string net = root + "/sys/class/net/";
  for (const std::string& name : EntriesOf(net)) {
    const auto found = addresses.find(name);
    placement::NetworkInterface interface;
    interface.name = name;
    // Tunnels and some others are "unknown" for as long as they are up.
    interface.up = LineOf(net + name + "/operstate") != "down";
    const bool hardware = interface.up && Exists(net + name + "/device");
    if (name == "lo" || (!hardware && found == addresses.end())) continue;
    if (fabric.interfaces.size() == kInterfacesMax) break;
    interface.mbit_s = NumberIn(LineOf(net + name + "/speed"));
    if (found != addresses.end()) interface.addresses = found->second;
    fabric.interfaces.push_back(std::move(interface));
  }
  const std::string rdma = root + "/sys/class/infiniband/";
  const bool usable = Exists(root + "/dev/infiniband");
  for (const std::string& device : EntriesOf(rdma)) {
    for (const std::string& number : EntriesOf(rdma + device + "/ports")) {
      if (fabric.ports.size() == kPortsMax) break;
      placement::RdmaPort port = ReadPort(rdma + device, device, number, addresses);
      if (!usable && port.state == "ACTIVE") port.state = placement::kNoVerbsDevice;
      fabric.ports.push_back(std::move(port));
    }
  }
  for (const char* module : {"nvidia_peermem", "nv_peer_mem"}) {
    if (fabric.gpudirect.empty() && Exists(root + "/sys/module/" + module))
      fabric.gpudirect = module;
  }
  if (fabric.gpudirect.empty() && LendsByDmaBuf(root)) fabric.gpudirect = "dma-buf";
  return fabric;
}

std::vector<placement::NvLinks> GroupLinks(const std::vector<GpuLinks>& gpus) {
  std::vector<placement::NvLinks> groups;
  std::vector<std::uint32_t> last;  // last number of each group
  for (const GpuLinks& gpu : gpus) {
    if (gpu.links == 0) continue;
    const std::string id = std::to_string(gpu.index);
    std::size_t at = 0;
    while (at < groups.size() &&
           (groups[at].links != gpu.links || groups[at].mbyte_s != gpu.mbyte_s))
      ++at;
    if (at == groups.size()) {
      groups.push_back({id, gpu.links, gpu.mbyte_s});
      last.push_back(gpu.index);
      continue;
    }
    std::string& text = groups[at].gpus;
    const std::size_t sign = text.find_last_of("-+");
    const bool follows = last[at] + 1 == gpu.index;
    if (follows && sign != std::string::npos && text[sign] == '-') text.erase(sign);
    text += (follows ? "-" : "+") + id;
    last[at] = gpu.index;
  }
  return groups;
}

std::string RdmaKind(const placement::Fabric& fabric) {
  const placement::RdmaPort* best = nullptr;
  for (const placement::RdmaPort& port : fabric.ports) {
    const bool known = port.layer == "InfiniBand" || port.layer == "Ethernet";
    if (port.state != "ACTIVE" || !known) continue;
    if (best == nullptr || port.mbit_s > best->mbit_s) best = &port;
  }
  if (best == nullptr) return "";
  return best->layer == "InfiniBand" ? "infiniband" : "roce";
}

std::set<std::string> NcclFileNames(const std::string& root, const std::string& file,
                                    const std::string& home) {
  std::set<std::string> names;
  TakeNames(os::ReadText(root + "/etc/nccl.conf").value_or(""), &names);
  const std::string own = !file.empty() ? file : home.empty() ? "" : home + "/.nccl.conf";
  if (!own.empty()) TakeNames(os::ReadText(own).value_or(""), &names);
  return names;
}

}  // namespace troupe::worker
