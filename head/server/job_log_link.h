// The ends of jobs' logs on a thread of their own: what the reducer lets in is written there, and
// what it lets out is read and answered.
//
// View: one head process. Serve() on the head's loop; answers are posted to it. Thread and database
// begin with the first job that ends. What waits to be written is kWaitingBytesMax at most, what
// waits to be read kReadsMax: more is dropped, and refused.
//
// The marker of a job does not wait for its log: when the head is killed between the two, the log
// lies on its node alone.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "head/core/machine/io.h"
#include "head/journal/sqlite_job_logs.h"
#include "runtime/async/loop_thread.h"

namespace troupe::head {

class JobLogLink {
 public:
  static constexpr std::size_t kWaitingBytesMax = 64u << 20;
  static constexpr std::size_t kReadsMax = 256;
  using Answer = std::function<void(const Send&)>;

  /// `loop` must outlive it.
  JobLogLink(async::Executor loop, std::string folder)
      : loop_(std::move(loop)), folder_(std::move(folder)) {}

  /// Does what these effects ask of it; `answer` gets what is to be sent.
  void Serve(Effects& effects, const Answer& answer);

 private:
  Status OpenIfNeeded();
  void Write(const KeptLog& log);
  wire::Message Read(const KeptLogRead& read);
  StatusOr<wire::Message> Find(const KeptLogRead& read);

  const async::Executor loop_;
  const std::string folder_;
  std::unique_ptr<SqliteJobLogs> logs_;  // the thread's
  std::atomic<std::size_t> waiting_bytes_{0};
  std::size_t reads_ = 0;                    // the loop's
  std::optional<async::LoopThread> thread_;  // last: it uses the others
};

}  // namespace troupe::head
