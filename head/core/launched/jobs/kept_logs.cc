#include "head/core/launched/jobs/kept_logs.h"

#include "head/core/machine/lived_time.h"

namespace troupe::head {

std::uint32_t KeptLogBytesOf(const Launch& launch) {
  return launch.job.token.IsNil() ? 0 : kKeptLogBytes;
}

void OnKeepLog(Turn& turn, const Node& node, const wire::KeepLog& message,
               const std::string& text) {
  const Launch* launch = turn.FindLaunch(message.launch);
  const bool ours = launch != nullptr && launch->epoch == message.epoch && message.rank == 0 &&
                    !launch->ranks.empty() && launch->ranks[0].node == node.id;
  if (!ours || text.empty() || text.size() > KeptLogBytesOf(*launch)) return;  // KL-1
  turn.kept_logs.push_back(
      {launch->id, launch->epoch, message.offset, LivedUs(turn.state, turn.now), text});
}

void OnReadLog(Turn& turn, const Request& request, const wire::ReadLog& message) {
  if (message.launch.IsNil()) {
    turn.Refuse(request, ErrorCode::kInvalid,
                "the head has logs of jobs alone: name the launch of a job, or ask the worker");
    return;
  }
  KeptLogRead read;
  read.to = request.route;
  read.reply_to = request.id;
  read.launch = message.launch;
  read.epoch = message.epoch;
  read.offset = message.offset;
  read.bytes_max = message.bytes_max;
  turn.kept_log_reads.push_back(read);
}

}  // namespace troupe::head
