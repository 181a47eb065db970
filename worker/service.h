// Answers what a worker itself is asked: pieces of logs, stacks, blobs in and out.
//
// View: one node; on the worker's loop. The same answers for local processes (by their channel),
// local clients (Unix socket) and other nodes and drivers (TLS). ReadLog and ReadLogs may suspend
// while they wait for more text, readings of processes while these are read; the blob requests do
// not suspend, so their order is the order of the calls.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/async/task.h"
#include "runtime/base/time.h"
#include "runtime/wire/messages.h"
#include "worker/blob_store.h"
#include "worker/log_files.h"
#include "worker/log_watch.h"

namespace troupe::worker {

class Service {
 public:
  template <class Request>
  using Reading = std::function<async::Task<StatusOr<wire::Message>>(Request)>;
  /// Ways to read from processes from outside, or from their files.
  struct Readings {
    Reading<wire::ReadStacks> stacks;
    Reading<wire::ReadProfile> profile;
    Reading<wire::ReadTimeline> timeline;
  };

  /// All references, and what `writing` and `readings` refer to, must outlive the service. `writer`
  /// says which process still writes to a log file; 0: none does.
  Service(const Clock& clock, BlobStore& blobs, LogFiles& logs, LogWatch& watch,
          std::function<int(const std::string&)> writer, Readings readings);

  static bool Handles(const wire::Body& body);
  /// The answer to `request`, an ErrorReply if need be. `asker` tells those who ask apart.
  async::Task<wire::Message> Answer(std::uint64_t asker, wire::Message request);
  /// Forgets an asker that is gone: what waits for it need not.
  void Forget(std::uint64_t asker);

 private:
  /// A reader of several logs at once.
  struct Reader {
    std::uint64_t enough = 0;  // up to this round nothing waits
    std::set<LogWatch::Waiter*> waiting;
  };
  async::Task<StatusOr<wire::Message>> ReadLog(wire::ReadLog request);
  async::Task<StatusOr<wire::Message>> ReadLogs(std::uint64_t asker, wire::ReadLogs request);
  /// Collects the lines of those in these places; returns whether they are worth an answer.
  StatusOr<bool> Collect(const wire::ReadLogs& request, const std::vector<std::string>& files,
                         const std::set<std::size_t>& places, wire::LogParts* parts,
                         std::string* text) const;
  StatusOr<wire::Message> PutBlob(std::uint64_t asker, const wire::PutBlob& request,
                                  const std::string& chunk);
  wire::Message GetBlob(const wire::GetBlob& request);
  StatusOr<std::string> FileOf(const wire::ReadLog& request) const;

  const Clock& clock_;
  BlobStore& blobs_;
  LogFiles& logs_;
  LogWatch& watch_;
  const std::function<int(const std::string&)> writer_;
  const Readings readings_;
  std::map<std::uint64_t, std::shared_ptr<Reader>> readers_;
};

/// The ErrorReply to request `id`.
wire::Message ErrorAnswer(std::uint64_t id, const Status& status);

}  // namespace troupe::worker
