#include <absl/strings/str_format.h>
#include <troupe/placement_group.h>

#include <chrono>
#include <utility>

#include "actors/api/calls.h"
#include "actors/api/session.h"
#include "actors/api/wire_forms.h"

namespace troupe {
namespace {

const wire::GroupInfo& GroupInfoOf(const StatusOr<wire::Message>& answer) {
  if (!answer.ok()) api::ThrowStatus(answer.status());
  const auto* update = wire::GetIf<wire::GroupUpdate>(&answer->body);
  if (update == nullptr) throw Error("a request about a group was answered with something else");
  return update->info;
}

bool IsDecided(const wire::GroupInfo& info) {
  return info.state == wire::GroupState::kCreated || info.state == wire::GroupState::kRemoved ||
         info.state == wire::GroupState::kInfeasible;
}

wire::CreateGroup RequestFor(const std::vector<ResourceAmounts>& bundles,
                             const PlacementGroupOptions& options, const std::string& name_space) {
  wire::CreateGroup create;
  create.group = api::NewId<GroupId>();
  create.name = options.name;
  if (!options.name.empty()) create.namespace_ = name_space;
  create.strategy = api::StrategyOf(options.strategy);
  create.detached = options.detached;
  create.priority = options.priority;
  if (bundles.empty()) throw InvalidError("a placement group needs at least one bundle");
  for (const ResourceAmounts& each : bundles) {
    wire::Bundle bundle;
    bundle.index = static_cast<std::uint32_t>(create.bundles.size());
    bundle.resources = api::ResourcesOf(each);
    if (bundle.resources.empty())
      throw InvalidError("bundle " + std::to_string(bundle.index) + " asks for nothing");
    create.bundles.push_back(std::move(bundle));
  }
  return create;
}

}  // namespace

PlacementGroup CreatePlacementGroup(const std::vector<ResourceAmounts>& bundles,
                                    const PlacementGroupOptions& options) {
  const std::shared_ptr<api::Session> session = api::NeedSession();
  wire::CreateGroup create = RequestFor(bundles, options, session->place().namespace_);
  const GroupId id = create.group;
  const wire::GroupInfo info = GroupInfoOf(session->Request(std::move(create)));
  if (info.state == wire::GroupState::kInfeasible) throw PlacementError(info.reason);
  session->PostReply(info);
  return PlacementGroup(id.Hex(), bundles.size());
}

PlacementGroup GetPlacementGroup(const std::string& name) {
  const std::shared_ptr<api::Session> session = api::NeedSession();
  wire::GetGroup get;
  get.name = name;
  get.namespace_ = session->place().namespace_;
  get.watch = true;
  const wire::GroupInfo info = GroupInfoOf(session->Request(std::move(get)));
  session->PostReply(info);
  return PlacementGroup(info.group.Hex(), info.bundles.size());
}

void RemovePlacementGroup(const PlacementGroup& group) {
  const std::shared_ptr<api::Session> session = api::NeedSession();
  wire::RemoveGroup remove;
  remove.group = api::GroupIdOf(group.id());
  GroupInfoOf(session->Request(std::move(remove)));
  session->ForgetGroup(api::GroupIdOf(group.id()));  // the head answers later questions
}

void PlacementGroup::Ready(Timeout timeout) const {
  const std::shared_ptr<api::Session> session = api::NeedSession();
  const GroupId id = api::GroupIdOf(id_);
  if (const Status known = session->Follow(id); !known.ok()) api::ThrowStatus(known);
  const StatusOr<wire::GroupInfo> info =
      session->AwaitGroup(id, IsDecided, api::DeadlineOf(timeout));
  const std::string label = "placement group " + id_.substr(0, 8);
  if (!info.ok() && ErrorCodeOf(info.status()) == ErrorCode::kTimeout) {
    throw TimeoutError(absl::StrFormat(
        "%s was not ready within %g s of the call of Ready()\n  `troupe explain %s` says what it "
        "waits for",
        label, std::chrono::duration<double>(*timeout).count(), id_.substr(0, 8)));
  }
  if (!info.ok()) api::ThrowStatus(info.status());
  if (info->state == wire::GroupState::kRemoved) throw PlacementError(label + " was removed");
  if (info->state == wire::GroupState::kInfeasible) throw PlacementError(info->reason);
}

std::vector<std::string> PlacementGroup::Nodes() const {
  Ready();
  const std::shared_ptr<api::Session> session = api::NeedSession();
  wire::GetGroup get;
  get.group = api::GroupIdOf(id_);
  const wire::GroupInfo info = GroupInfoOf(session->Request(std::move(get)));
  StatusOr<wire::Message> answer = session->Request(wire::GetStatus());
  if (!answer.ok()) api::ThrowStatus(answer.status());
  const auto* status = wire::GetIf<wire::ClusterStatus>(&answer->body);
  std::vector<std::string> names(bundle_count_);
  for (const wire::BundlePlace& place : info.places) {
    for (const wire::NodeInfo& node : status->nodes) {
      if (node.node == place.node && place.index < names.size()) names[place.index] = node.name;
    }
  }
  return names;
}

}  // namespace troupe
