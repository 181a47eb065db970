#include <troupe/cluster.h>

#include <cstdlib>
#include <utility>

#include "actors/api/cluster_files.h"
#include "actors/api/process.h"
#include "actors/api/session.h"
#include "actors/api/wire_forms.h"
#include "actors/caller/reactor.h"
#include "actors/net/control_session.h"

namespace troupe {
namespace {

using api::Session;

struct Target {
  net::Address address;
  std::string token_file;
  Duration return_limit{};
};

[[noreturn]] void ThrowNoToken(const std::string& address) {
  throw JoinError(
      "connecting to " + address +
      " needs a token: no head of this user at that address runs on this host\n  on the head: "
      "troupe token create --role client > token\n  here: InitOptions::token_file = \"token\", or "
      "TROUPE_TOKEN_FILE=token");
}

net::Address Checked(StatusOr<net::Address> address) {
  if (!address.ok()) api::ThrowStatus(address.status());
  return *std::move(address);
}

/// By its Unix socket where this user runs its head on this host; else over TLS with the token.
Target TargetOf(const InitOptions& options, const std::string& address) {
  Target target;
  target.return_limit = Duration(options.return_timeout);
  target.address = Checked(net::ParseAddress(address));
  if (target.address.is_unix()) return target;
  target.token_file =
      options.token_file.empty() ? api::VariableOf("TROUPE_TOKEN_FILE") : options.token_file;
  if (!target.token_file.empty()) return target;
  for (const api::LocalCluster& each : api::LocalClusters(/*of_this_home=*/false)) {
    if (each.address != api::NumericAddress(address)) continue;
    target.address = Checked(net::UnixAddress(each.socket));
    // The cluster ends with its program
    if (each.of_a_program) target.return_limit = Duration::zero();
    return target;
  }
  ThrowNoToken(address);
}

/// At the program's end: no thread of the runtime is to meet statics that are gone.
void Leave() {
  Shutdown();
  actors::CallReactor::StopCurrent();
}

}  // namespace

void Init(const InitOptions& options) {
  api::ServeIfActor();
  api::RunIfRank();
  if (Session::Current().ok()) {
    throw ConnectionError(
        "troupe::Init() was called before in this process; call troupe::Shutdown() first");
  }
  std::string address =
      options.address.empty() ? api::VariableOf("TROUPE_ADDRESS") : options.address;
  if (address.empty() || address == "auto") {
    StatusOr<api::LocalCluster> local = api::OnlyLocalCluster();
    if (!local.ok()) api::ThrowStatus(local.status());
    address = local->address;
  }
  const Target target = TargetOf(options, address);
  actors::JoinArguments join;
  join.token_file = target.token_file;
  join.limit = Duration(options.timeout);
  StatusOr<net::OpenOptions> open = actors::OpenOptionsOf(target.address, join);
  if (!open.ok()) api::ThrowStatus(open.status());
  StatusOr<std::shared_ptr<client::ControlClient>> control =
      client::ControlClient::Connect(*std::move(open), {}, target.return_limit);
  if (!control.ok()) api::ThrowStatus(control.status());
  api::SessionPlace place;
  place.address = address;
  place.namespace_ =
      options.namespace_.empty() ? api::VariableOf("TROUPE_NAMESPACE") : options.namespace_;
  if (place.namespace_.empty()) place.namespace_ = api::NewId<RequestId>().Hex();
  place.job = api::VariableOf("TROUPE_JOB_ID");
  if (place.job.empty()) place.job = api::NewId<RequestId>().Short();
  if (const auto launch = LaunchId::FromHex(api::VariableOf("TROUPE_LAUNCH_ID")))
    place.launch = *launch;
  auto session = std::make_shared<Session>(*std::move(control), std::move(place));
  session->Start();
  if (const Status looked = session->LookAround(); !looked.ok()) api::ThrowStatus(looked);
  Session::SetCurrent(std::move(session));
  static const bool at_exit = std::atexit(&Leave) == 0;
  static_cast<void>(at_exit);
}

void Shutdown() {
  const StatusOr<std::shared_ptr<Session>> session = Session::Current();
  if (!session.ok() || (*session)->place().in_process) return;
  Session::SetCurrent(nullptr);
  (*session)->Close();
}

bool IsInitialized() { return Session::Current().ok(); }

namespace {

std::map<std::string, double> Sum(bool free) {
  StatusOr<wire::Message> answer = api::NeedSession()->Request(wire::GetStatus());
  if (!answer.ok()) api::ThrowStatus(answer.status());
  std::map<std::string, double> sum;
  const auto* status = wire::GetIf<wire::ClusterStatus>(&answer->body);
  if (status == nullptr) throw Error("GetStatus was answered with something else");
  for (const wire::NodeInfo& node : status->nodes) {
    if (node.state != wire::NodeState::kAlive) continue;
    for (const wire::Resource& each : free ? node.free : node.resources)
      sum[each.name] += static_cast<double>(each.ten_thousandths) / 10000;
  }
  return sum;
}

}  // namespace

std::map<std::string, double> ClusterResources() { return Sum(false); }
std::map<std::string, double> AvailableResources() { return Sum(true); }

}  // namespace troupe
