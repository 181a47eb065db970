// A thread per group that notices the ends of its peers, by event: a connection that ended, or a
// message of a peer that leaves or has stopped. It also answers who of this node is absent,
// whatever the program's threads do.
//
// What it hears is told on its thread. An end is told once of each peer.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "actors/train/local/peer_link.h"
#include "runtime/base/mutex.h"
#include "runtime/base/time.h"
#include "runtime/base/unique_fd.h"

namespace troupe::train {

enum class PeerFate {
  kLeft,    // in order
  kEnded,  // the process is gone
  kSilent,  // the node was not heard any more
};

class PeerWatch {
 public:
  struct Hooks {
    /// The peer counts on no more.
    std::function<void(const PeerLink& peer, PeerFate fate)> on_gone;
    /// The peer has stopped the group, and why.
    std::function<void(int peer, const std::string& reason)> on_stopped;
    /// A peer asks something; what it is told.
    std::function<std::string(const std::string& text)> on_asked;
  };
  /// Begins to hear.
  PeerWatch(std::vector<PeerLink> links, const Clock& clock, Hooks hooks);
  /// No hook is called once it returns; the connections end.
  ~PeerWatch();
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

  /// Tells all peers; whoever takes no word sees the connection's end. Any thread; returns at once.
  void TellAll(FrameKind kind, std::string_view text);
  /// Asks some peers, and blocks until all have answered, or `most` is over. Who has answered, and
  /// what. One caller at a time.
  std::map<int, std::string> Ask(const std::vector<int>& peers, std::string_view text,
                                 Duration most);

 private:
  void Run();
  /// False: nothing more will come of it.
  bool Hear(PeerLink& link);

  std::vector<PeerLink> links_;
  const Clock& clock_;
  const Hooks hooks_;
  Mutex mutex_;
  CondVar changed_;
  std::map<int, std::string> answers_ ABSL_GUARDED_BY(mutex_);
  const UniqueFd end_;
  std::thread thread_;
};

}  // namespace troupe::train
