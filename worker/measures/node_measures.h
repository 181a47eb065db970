// Figures of this machine and of the worker's processes, read from /proc and /sys.
//
// View: one node. Blocking, for some milliseconds: it runs on a thread of its own (measurer.h). A
// figure that cannot be read is left out. Rates are since the call before.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/wire/messages.h"

namespace troupe::worker {

/// A process and what it is: "worker", "rank", "actor", "store".
struct MeasuredProcess {
  pid_t pid = 0;
  std::string component;
};

class NodeMeasurer {
 public:
  /// `folders`: the file systems to be measured are those that they lie on. `proc`: where procfs is
  /// mounted.
  explicit NodeMeasurer(std::vector<std::string> folders, std::string proc = "/proc");

  std::vector<wire::Measure> Read(const std::vector<MeasuredProcess>& processes);

 private:
  void ReadCpus(std::vector<wire::Measure>& to);
  void ReadMemory(std::vector<wire::Measure>& to) const;
  void ReadDisks(std::vector<wire::Measure>& to) const;
  void ReadNetwork(std::vector<wire::Measure>& to) const;
  void ReadPressure(std::vector<wire::Measure>& to) const;
  void ReadProcesses(const std::vector<MeasuredProcess>& processes, std::vector<wire::Measure>& to);
  void ReadStore(const std::vector<MeasuredProcess>& processes,
                 std::vector<wire::Measure>& to) const;

  const std::vector<std::string> folders_;
  const std::string proc_;
  std::uint64_t busy_ = 0, all_ = 0;  // ticks of processors, at the call before
  // Processor time of components since the start, and of each process when it was last seen.
  std::map<std::string, double> cpu_s_;
  std::map<pid_t, double> seen_s_;
};

}  // namespace troupe::worker
