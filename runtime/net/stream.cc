#include "runtime/net/stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/write.hpp>
#include <string>
#include <utility>

namespace troupe::net {
namespace {

using async::kTuple;
using async::Task;
namespace asio = async::asio;
using ErrorCodeType = boost::system::error_code;

constexpr std::size_t kTlsBlockBytes = 32 * 1024;
constexpr std::size_t kTlsSliceBytes = 128 * 1024;

Status Lost(const ErrorCodeType& error) {
  return MakeError(ErrorCode::kConnection, error.message());
}

void CloseSocket(Socket& socket) {
  ErrorCodeType ignored;  // closing a socket that is already gone is what was wanted
  socket.shutdown(Socket::shutdown_both, ignored);
  socket.close(ignored);
}

class PlainStream final : public Stream {
 public:
  explicit PlainStream(Socket socket) : socket_(std::move(socket)) {}

  Task<StatusOr<std::size_t>> Read(char* into, std::size_t size) override {
    auto [error, n] = co_await socket_.async_read_some(asio::buffer(into, size), kTuple);
    if (error == asio::error::eof) co_return std::size_t{0};
    if (error) co_return Lost(error);
    co_return n;
  }
  Task<Status> Write(std::string_view bytes) override {
    auto [error, n] =
        co_await asio::async_write(socket_, asio::buffer(bytes.data(), bytes.size()), kTuple);
    co_return error ? Lost(error) : Status();
  }
  void Close() override { CloseSocket(socket_); }
  int native_fd() override { return socket_.is_open() ? socket_.native_handle() : -1; }

 private:
  Socket socket_;
};

class TlsStream final : public Stream {
 public:
  TlsStream(Socket socket, std::unique_ptr<TlsEngine> engine)
      : socket_(std::move(socket)), engine_(std::move(engine)) {}

  Task<StatusOr<std::size_t>> Read(char* into, std::size_t size) override {
    for (;;) {
      StatusOr<std::size_t> plain = engine_->Read(into, size);
      if (!plain.ok() || *plain > 0) co_return plain;
      if (engine_->HasOutgoing()) TROUPE_CO_TRY(co_await Flush());  // e.g. a key update's answer
      if (engine_->closed()) co_return std::size_t{0};
      auto [error, n] = co_await socket_.async_read_some(asio::buffer(in_), kTuple);
      // An EOF without the peer's farewell is normal when it was killed; whether it cut a message
      // off, the framing tells.
      if (error == asio::error::eof) co_return std::size_t{0};
      if (error) co_return Lost(error);
      const std::string_view received(in_.data(), n);
      TROUPE_CO_TRY(engine_->Feed(received));
    }
  }
  Task<Status> Write(std::string_view bytes) override {
    while (!bytes.empty()) {
      TROUPE_CO_TRY(engine_->Write(bytes.substr(0, kTlsSliceBytes)));
      bytes.remove_prefix(std::min(bytes.size(), kTlsSliceBytes));
      TROUPE_CO_TRY(co_await Flush());
    }
    co_return Status();
  }
  void Close() override {
    if (!socket_.is_open()) return;
    engine_->Shutdown();
    const std::string farewell = engine_->TakeOutgoing();
    if (!flushing_ && !farewell.empty()) {
      // Best effort, never waiting: an EOF without it is understood as well.
      send(socket_.native_handle(), farewell.data(), farewell.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    CloseSocket(socket_);
  }
  int native_fd() override { return socket_.is_open() ? socket_.native_handle() : -1; }

 private:
  // Reader and writer may both have something to send: whoever is at it takes the other's along.
  Task<Status> Flush() {
    if (flushing_) co_return Status();
    flushing_ = true;
    Status status;
    while (status.ok() && engine_->HasOutgoing()) {
      out_ = engine_->TakeOutgoing();
      auto [error, n] = co_await asio::async_write(socket_, asio::buffer(out_), kTuple);
      if (error) status = Lost(error);
    }
    flushing_ = false;
    co_return status;
  }

  Socket socket_;
  std::unique_ptr<TlsEngine> engine_;
  std::array<char, kTlsBlockBytes> in_;
  std::string out_;
  bool flushing_ = false;
};

Task<Status> SendOutgoing(Socket& socket, TlsEngine& engine) {
  const std::string out = engine.TakeOutgoing();
  if (out.empty()) co_return Status();
  auto [error, n] = co_await asio::async_write(socket, asio::buffer(out), kTuple);
  co_return error ? Lost(error) : Status();
}

}  // namespace

std::unique_ptr<Stream> MakePlainStream(Socket socket) {
  return std::make_unique<PlainStream>(std::move(socket));
}
std::unique_ptr<Stream> MakeTlsStream(Socket socket, std::unique_ptr<TlsEngine> engine) {
  return std::make_unique<TlsStream>(std::move(socket), std::move(engine));
}

Task<Status> TlsHandshake(Socket& socket, TlsEngine& engine) {
  TROUPE_CO_TRY(engine.Start());
  std::array<char, 4096> block;
  while (true) {
    TROUPE_CO_TRY(co_await SendOutgoing(socket, engine));
    if (engine.established()) co_return Status();
    auto [error, n] = co_await socket.async_read_some(asio::buffer(block), kTuple);
    if (error == asio::error::eof) {
      co_return MakeError(ErrorCode::kConnection,
                          "the connection was closed during the TLS handshake");
    }
    if (error) co_return Lost(error);
    Status fed = engine.Feed(std::string_view(block.data(), n));
    if (!fed.ok()) {
      Status alert = co_await SendOutgoing(socket, engine);  // the first error is the one to tell
      co_return fed;
    }
  }
}

StatusOr<Socket> WrapSocket(const async::Executor& executor, UniqueFd fd) {
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0) {
    return MakeError(ErrorCode::kInvalid, "the descriptor given is not a socket");
  }
  Socket socket(executor);
  ErrorCodeType error;
  socket.assign(asio::generic::stream_protocol(own.ss_family, 0), fd.get(), error);
  if (!error) fd.Release();
  if (!error) socket.non_blocking(true, error);
  if (error) return Lost(error);
  return socket;
}

void SetTcpOptions(int fd) {
  const auto set = [fd](int level, int option, int value) {
    setsockopt(fd, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 2);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 5000);
}

}  // namespace troupe::net
