#include "runtime/net/client_hello.h"

#include <errno.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>

namespace troupe::net {
namespace {

using State = ServerNamePeek::State;

constexpr unsigned kHandshakeRecord = 22, kClientHelloType = 1, kServerNameExtension = 0;

/// Takes numbers and vectors off the front; after an overread it is `!ok` and yields zeros.
class Cutter {
 public:
  explicit Cutter(std::string_view bytes) : rest_(bytes) {}
  unsigned Number(int bytes) {
    unsigned value = 0;
    for (const char c : Take(static_cast<std::size_t>(bytes))) {
      value = value << 8 | static_cast<unsigned char>(c);
    }
    return value;
  }
  std::string_view Take(std::size_t size) {
    if (size > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  /// A vector with a length prefix of `bytes` bytes.
  std::string_view Vector(int bytes) { return Take(Number(bytes)); }
  bool ok() const { return ok_; }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

ServerNamePeek Found(State state, std::string name = {}) {
  ServerNamePeek peek;
  peek.state = state;
  peek.name = std::move(name);
  return peek;
}

/// Joins the handshake bytes of the leading records. kIncomplete when the message is not whole yet.
State JoinRecords(std::string_view bytes, std::string& message) {
  while (!bytes.empty()) {
    if (static_cast<unsigned char>(bytes[0]) != kHandshakeRecord) return State::kNotTls;
    if (bytes.size() >= 2 && bytes[1] != 3) return State::kNotTls;
    if (bytes.size() < 5) return State::kIncomplete;
    const std::size_t length =
        static_cast<unsigned char>(bytes[3]) * 256u + static_cast<unsigned char>(bytes[4]);
    if (length == 0 || length > kClientHelloBytesMax) return State::kNotTls;
    message += bytes.substr(5, length);
    if (!message.empty() && static_cast<unsigned char>(message[0]) != kClientHelloType)
      return State::kNotTls;
    if (message.size() >= 4) {
      Cutter header(std::string_view(message).substr(1, 3));
      const std::size_t needed = header.Number(3);
      if (needed + 4 > kClientHelloBytesMax) return State::kNotTls;
      if (message.size() >= needed + 4) {
        message.resize(needed + 4);
        return State::kName;  // whole
      }
    }
    if (bytes.size() < 5 + length) return State::kIncomplete;
    bytes.remove_prefix(5 + length);
  }
  return State::kIncomplete;
}

ServerNamePeek ReadServerName(std::string_view extension) {
  Cutter outer(extension);
  Cutter list(outer.Vector(2));
  while (outer.ok() && !list.empty()) {
    const unsigned type = list.Number(1);
    const std::string_view name = list.Vector(2);
    if (!list.ok()) return Found(State::kNotTls);
    if (type == 0)
      return name.size() > 255 ? Found(State::kNotTls) : Found(State::kName, std::string(name));
  }
  return Found(State::kNone);
}

}  // namespace

ServerNamePeek ParseClientHello(std::string_view bytes) {
  bytes = bytes.substr(0, kClientHelloBytesMax + 1);  // later bytes change no verdict
  std::string message;
  const State joined = JoinRecords(bytes, message);
  if (joined == State::kIncomplete && bytes.size() > kClientHelloBytesMax)
    return Found(State::kNotTls);
  if (joined != State::kName) return Found(joined);
  Cutter hello(std::string_view(message).substr(4));
  hello.Take(2 + 32);  // legacy version, random
  hello.Vector(1);     // legacy session id
  hello.Vector(2);     // cipher suites
  hello.Vector(1);     // compression methods
  if (!hello.ok()) return Found(State::kNotTls);
  if (hello.empty()) return Found(State::kNone);
  Cutter extensions(hello.Vector(2));
  if (!hello.ok()) return Found(State::kNotTls);
  while (!extensions.empty()) {
    const unsigned type = extensions.Number(2);
    const std::string_view body = extensions.Vector(2);
    if (!extensions.ok()) return Found(State::kNotTls);
    if (type == kServerNameExtension) return ReadServerName(body);
  }
  return Found(State::kNone);
}

StatusOr<ServerNamePeek> PeekServerName(int socket, std::size_t* available) {
  std::string bytes(kClientHelloBytesMax + 1, '\0');
  ssize_t n = 0;
  do {
    n = recv(socket, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    if (available != nullptr) *available = 0;
    return Found(State::kIncomplete);
  }
  if (n < 0) {
    return MakeError(ErrorCode::kConnection,
                     std::string("the peer is gone: ") + std::strerror(errno));
  }
  if (n == 0) return MakeError(ErrorCode::kConnection, "the peer closed before it said anything");
  bytes.resize(static_cast<std::size_t>(n));
  if (available != nullptr) *available = bytes.size();
  return ParseClientHello(bytes);
}

}  // namespace troupe::net
