// How a process comes to its control session: a program by joining a head, a process of the runtime
// by the channel that its worker gave it. Whatever language it is written in.
//
// View: one process. The functions block only where it says so.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/base/unique_fd.h"
#include "runtime/client/control_client.h"
#include "runtime/net/address.h"
#include "runtime/net/open_session.h"

namespace troupe::actors {

/// How a program proves itself to who it joins.
struct JoinArguments {
  std::string role = "client";  // worker, client, observer or process
  std::string name;             // for people; empty: the host's name and the process id
  std::string token;            // text; or
  std::string token_file;  // file of the token
  std::string python_version;   // "3.11"; empty: no Python
  bool certificate = true;      // ask the head for one; a worker issues none
  Duration limit = std::chrono::seconds(5);
};

/// Returns the hello of a process.
wire::Hello HelloOf(wire::Role role, const std::string& name, const std::string& python_version);
/// Reads the token's file. kInvalid: no such role; what ParseToken and ReadSecretFile say.
StatusOr<net::OpenOptions> OpenOptionsOf(const net::Address& address,
                                         const JoinArguments& arguments);
/// Over the channel that a worker gave this process, `peer` in errors: from the first message on
/// the process heeds its lease and what was revoked, without any other thread.
StatusOr<std::shared_ptr<client::ControlClient>> AdoptProcess(UniqueFd fd, const std::string& peer);

}  // namespace troupe::actors
