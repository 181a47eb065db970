// The files and folders a worker owns: its state, its lock, its sockets.
//
// View: one worker process. Blocking (disk). The node's folder is locked for the life of the
// object, so that two workers never share one; the socket folder is this process's own, is removed
// with it, and those of dead workers are removed at start.
#pragma once

#include <string>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "worker/core/effects.h"
#include "worker/core/worker_core.h"
#include "worker/ring_files.h"

namespace troupe::worker {

class NodeFiles {
 public:
  /// Errors: kAlreadyExists when another worker uses `node_dir`.
  static StatusOr<NodeFiles> Open(const std::string& node_dir, const std::string& socket_dir);
  NodeFiles(NodeFiles&&) = default;
  NodeFiles& operator=(NodeFiles&&) = delete;
  ~NodeFiles();

  const std::string& node_dir() const { return node_dir_; }
  /// Short, empty, 0700.
  const std::string& socket_dir() const { return socket_dir_; }
  std::string LogDir() const { return node_dir_ + "/logs"; }
  std::string BlobDir() const { return node_dir_ + "/blobs"; }
  std::string ResultDir() const { return node_dir_ + "/results"; }
  std::string ZygoteLog() const { return node_dir_ + "/zygote.log"; }
  std::string UnixPath() const { return socket_dir_ + "/worker.sock"; }

  RingFiles& rings() { return rings_; }

  RememberedState Remembered() const;
  /// node.json, replaced by rename.
  Status Save(const SaveState& state) const;

 private:
  NodeFiles(std::string node_dir, std::string socket_dir, UniqueFd lock, UniqueFd socket_lock);

  std::string node_dir_;
  std::string socket_dir_;
  UniqueFd lock_;
  UniqueFd socket_lock_;
  RingFiles rings_;  // in the socket folder, and gone with it
};

}  // namespace troupe::worker
