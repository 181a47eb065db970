#include "runtime/os/host.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>

#include "runtime/base/unique_fd.h"
#include "runtime/os/cgroup.h"
#include "runtime/os/text.h"

namespace troupe::os {
namespace {

struct Endpoint {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

std::optional<Endpoint> Numeric(const std::string& host) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), "9", &hints, &found) != 0) return std::nullopt;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> guard(found, freeaddrinfo);
  Endpoint endpoint;
  std::memcpy(&endpoint.storage, found->ai_addr, found->ai_addrlen);
  endpoint.size = found->ai_addrlen;
  return endpoint;
}

std::string AddressText(const sockaddr* address, socklen_t size) {
  char host[NI_MAXHOST] = "";
  getnameinfo(address, size, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  return host;
}

// A connected datagram socket asks the routing table and sends nothing.
std::string SourceAddressTo(const std::string& host) {
  const auto to = Numeric(host);
  if (!to) return "";
  const UniqueFd fd(socket(to->storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return "";
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&to->storage), to->size) != 0) return "";
  sockaddr_storage from{};
  socklen_t size = sizeof from;
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&from), &size) != 0) return "";
  return AddressText(reinterpret_cast<const sockaddr*>(&from), size);
}

LocalInterface InterfaceWith(const std::string& wanted) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> guard(list, freeifaddrs);
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (AddressText(each->ifa_addr, size) == wanted) return {each->ifa_name, wanted};
  }
  return {};
}

bool IsLoopback(const std::string& address) {
  return address.rfind("127.", 0) == 0 || address == "::1";
}

}  // namespace

std::string BootId() {
  std::string id = ReadText("/proc/sys/kernel/random/boot_id").value_or("");
  while (!id.empty() && id.back() == '\n') id.pop_back();
  for (const char* space : {"/proc/self/ns/mnt", "/proc/self/ns/net"}) {
    char name[64];
    const ssize_t size = readlink(space, name, sizeof name);
    if (size > 0) id.append("/").append(name, static_cast<std::size_t>(size));
  }
  return id;
}

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::string UserName() {
  std::vector<char> buffer(16 * 1024);
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return found->pw_name;
  return "uid" + std::to_string(geteuid());
}

std::uint32_t UsableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::uint32_t cpus = 1;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    cpus = static_cast<std::uint32_t>(CPU_COUNT(&set));
  const double quota = CpuQuota();
  if (quota > 0) cpus = std::min(cpus, static_cast<std::uint32_t>(std::ceil(quota)));
  return std::max(cpus, 1u);
}

LocalInterface InterfaceTo(const std::vector<std::string>& hosts) {
  for (const std::string& host : hosts) {
    const std::string source = SourceAddressTo(host);
    if (source.empty() || IsLoopback(source) || IsLoopback(host)) continue;
    LocalInterface found = InterfaceWith(source);
    if (!found.name.empty()) return found;
  }
  return {"lo", "127.0.0.1"};
}

std::string AddressOf(const std::string& interface) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return "";
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> guard(list, freeifaddrs);
  std::string second;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || interface != each->ifa_name) continue;
    if (each->ifa_addr->sa_family == AF_INET)
      return AddressText(each->ifa_addr, sizeof(sockaddr_in));
    if (each->ifa_addr->sa_family != AF_INET6) continue;
    const auto* const six = reinterpret_cast<const sockaddr_in6*>(each->ifa_addr);
    if (second.empty() && !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
      second = AddressText(each->ifa_addr, sizeof(sockaddr_in6));
  }
  return second;
}

std::vector<std::string> LocalAddresses() {
  constexpr std::size_t kMax = 32;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> guard(list, freeifaddrs);
  std::vector<std::string> addresses;
  for (const ifaddrs* each = list; each != nullptr && addresses.size() < kMax;
       each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    if (each->ifa_addr->sa_family == AF_INET)
      addresses.push_back(AddressText(each->ifa_addr, sizeof(sockaddr_in)));
    if (each->ifa_addr->sa_family != AF_INET6) continue;
    const auto* const six = reinterpret_cast<const sockaddr_in6*>(each->ifa_addr);
    if (!IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
      addresses.push_back(AddressText(each->ifa_addr, sizeof(sockaddr_in6)));
  }
  return addresses;
}

}  // namespace troupe::os
