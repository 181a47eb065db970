// The end of a job's log, which the head keeps: it is there when the node is lost, and when its
// files were removed.
//
//   KL-1  Only the worker of the node on which the job's present attempt is, or was, has it kept.
//   KL-2  A job's log is that of its latest attempt that ended: an attempt's end replaces that of
//         the one before.
//
// The reducer decides who may; the bytes go past its state to a database of their own
// (head/server/job_log_link.h). Pure; view: cluster.
#pragma once

#include <cstdint>
#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

/// How much of the end of its log is kept: nothing of launches that are no jobs.
std::uint32_t KeptLogBytesOf(const Launch& launch);

void OnKeepLog(Turn& turn, const Node& node, const wire::KeepLog& message, const std::string& text);
void OnReadLog(Turn& turn, const Request& request, const wire::ReadLog& message);

}  // namespace troupe::head
