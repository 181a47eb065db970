// A TCP relay in front of a port on loopback, for tests: it ends the connections that run through
// it, or stops passing on what comes from one side. One thread; commands return when they have
// taken effect.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <future>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::actors {

class Relay {
 public:
  explicit Relay(std::uint16_t to) : wake_(::eventfd(0, EFD_NONBLOCK)), to_(to) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_in address = Loopback(0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 64), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Main(); });
  }
  ~Relay() {
    Do([this] { stopping_ = true; });
    thread_.join();
    for (Pair& pair : pairs_) pair.Close();
    for (const int fd : half_open_) ::close(fd);
    ::close(listener_);
    ::close(wake_);
  }
  std::uint16_t port() const { return port_; }
  int accepted() const { return accepted_; }

  /// Ends all connections: the caller's side by a reset or an orderly end; the actor's likewise, or
  /// not at all (it does not learn of it).
  void Cut(bool reset, bool tell_actor) {
    Do([=, this] {
      for (Pair& pair : pairs_) {
        const linger now{1, 0};
        if (reset) ::setsockopt(pair.caller, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        if (!tell_actor) half_open_.push_back(std::exchange(pair.actor, -1));
        pair.Close();
      }
      pairs_.clear();
    });
  }
  /// Holds the actor's replies back from now on.
  void HoldReplies(bool hold) {
    Do([=, this] { hold_replies_ = hold; });
  }
  /// Turns later connections to another port.
  void Turn(std::uint16_t to) {
    Do([=, this] { to_ = to; });
  }
  /// Refuses every connection at once.
  void Refuse(bool refuse) {
    Do([=, this] { refuse_ = refuse; });
  }

 private:
  struct Pair {
    int caller = -1;
    int actor = -1;
    std::string to_actor, to_caller;
    void Close() {
      if (caller >= 0) ::close(caller);
      if (actor >= 0) ::close(actor);
    }
  };
  static sockaddr_in Loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  void Do(std::function<void()> command) {
    std::promise<void> done;
    {
      const std::lock_guard lock(mutex_);
      commands_.push_back([&] {
        command();
        done.set_value();
      });
    }
    const std::uint64_t one = 1;
    (void)!::write(wake_, &one, sizeof one);
    done.get_future().wait();
  }
  void Accept() {
    const int caller = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (caller < 0) return;
    ++accepted_;
    const int actor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = Loopback(to_);
    if (refuse_ ||
        ::connect(actor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      ::close(caller);
      ::close(actor);
      return;
    }
    pairs_.push_back({caller, actor, {}, {}});
  }
  /// False: that side is over.
  static bool Pull(int from, std::string* into) {
    char bytes[65536];
    const ssize_t n = ::recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n > 0) into->append(bytes, static_cast<std::size_t>(n));
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
  }
  static void Push(int to, std::string* from) {
    if (from->empty()) return;
    const ssize_t n = ::send(to, from->data(), from->size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) from->erase(0, static_cast<std::size_t>(n));
  }
  static short Wants(const std::string& in, const std::string& out) {
    return static_cast<short>((in.size() < (1u << 20) ? POLLIN : 0) | (out.empty() ? 0 : POLLOUT));
  }
  void Main() {
    while (!stopping_) {
      std::vector<pollfd> watched = {{wake_, POLLIN, 0}, {listener_, POLLIN, 0}};
      for (const Pair& pair : pairs_) {
        const std::string nothing;
        watched.push_back(
            {pair.caller, Wants(pair.to_actor, hold_replies_ ? nothing : pair.to_caller), 0});
        watched.push_back({pair.actor, Wants(pair.to_caller, pair.to_actor), 0});
      }
      ::poll(watched.data(), watched.size(), -1);
      std::uint64_t ignored;
      (void)!::read(wake_, &ignored, sizeof ignored);
      pairs_.remove_if([this](Pair& pair) {
        const bool alive = Pull(pair.caller, &pair.to_actor) && Pull(pair.actor, &pair.to_caller);
        Push(pair.actor, &pair.to_actor);
        if (!hold_replies_) Push(pair.caller, &pair.to_caller);
        if (!alive) pair.Close();
        return !alive;
      });
      Accept();
      std::vector<std::function<void()>> commands;
      {
        const std::lock_guard lock(mutex_);
        commands.swap(commands_);
      }
      for (const std::function<void()>& command : commands) command();
    }
  }

  std::uint16_t port_ = 0;
  int listener_ = -1;
  int wake_ = -1;
  std::atomic<int> accepted_{0};
  std::mutex mutex_;
  std::vector<std::function<void()>> commands_;
  bool stopping_ = false;  // the thread's, as all below
  std::uint16_t to_;
  bool hold_replies_ = false;
  bool refuse_ = false;
  std::list<Pair> pairs_;
  std::vector<int> half_open_;
  std::thread thread_;
};

}  // namespace troupe::actors
