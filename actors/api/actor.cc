#include <troupe/actor.h>

#include <utility>

#include "actors/api/actor_state.h"
#include "actors/api/calls.h"
#include "actors/api/core/pickle.h"
#include "actors/api/own_program.h"
#include "actors/api/wire_forms.h"

namespace troupe {
namespace {

using api::ActorLink;
using api::Session;

constexpr std::size_t kArgumentBytesMax = 1u << 20;

wire::RuntimeEnvironment EnvironmentOf(const ActorOptions& options, Session& session) {
  wire::RuntimeEnvironment environment;
  environment.program = options.executable.empty() ? api::OwnFile() : options.executable;
  if (environment.program[0] != '/')
    throw InvalidError("the executable " + environment.program +
                       " is no absolute path: the node that runs it has another directory");
  if (session.all_on_this_host()) environment.working_directory = api::OwnDirectory();
  environment.env = api::VariablesOf(options.env, session.place());
  return environment;
}

void SetResources(const ActorOptions& options, wire::ActorSpec* spec) {
  std::map<std::string, double> held = options.resources;
  for (const char* name : {"CPU", "GPU", "memory"}) {
    if (held.count(name) > 0)
      throw InvalidError(std::string("give ") + name +
                         " as num_cpus, num_gpus or memory_bytes, not inside resources");
  }
  if (options.num_cpus) held["CPU"] = *options.num_cpus;
  if (options.num_gpus) held["GPU"] = *options.num_gpus;
  if (options.memory_bytes) held["memory"] = *options.memory_bytes;
  spec->run_resources = api::ResourcesOf(held);
  if (!options.num_cpus) held["CPU"] = 1;
  spec->resources = api::ResourcesOf(held);
  const int threads = static_cast<int>(options.num_cpus.value_or(0));
  if (threads > 1) {
    wire::EnvVar said;
    said.name = "TROUPE_THREADS";
    said.value = std::to_string(threads);
    spec->environment.env.push_back(std::move(said));
  }
}

wire::ActorSpec SpecOf(const std::string& class_name, const ActorOptions& options,
                       Session& session) {
  if (options.max_restarts < -1)
    throw InvalidError("max_restarts is a whole number, or -1 for any number, not " +
                       std::to_string(options.max_restarts));
  if (options.get_if_exists && options.name.empty())
    throw InvalidError("get_if_exists needs a name");
  wire::ActorSpec spec;
  spec.actor = api::NewId<ActorId>();
  spec.name = options.name;
  spec.namespace_ = options.namespace_.empty() ? session.place().namespace_ : options.namespace_;
  spec.class_name = class_name;
  spec.environment = EnvironmentOf(options, session);
  SetResources(options, &spec);
  spec.max_restarts = options.max_restarts;
  spec.get_if_exists = options.get_if_exists;
  spec.detached = options.detached;
  if (options.placement_group) {
    spec.group = api::GroupIdOf(options.placement_group->id());
    spec.bundle = options.bundle;
  } else if (options.bundle != -1) {
    throw InvalidError("a bundle needs a placement_group");
  }
  if (!options.labels.empty()) spec.where = api::WhereOf(options.labels);
  return spec;
}

const wire::ActorInfo& InfoOf(const StatusOr<wire::Message>& answer) {
  if (!answer.ok()) api::ThrowStatus(answer.status());
  const auto* update = wire::GetIf<wire::ActorUpdate>(&answer->body);
  if (update == nullptr) throw Error("a request about an actor was answered with something else");
  return update->info;
}

/// Nobody of this process has a handle: it ends once all calls are answered, unless others want it.
void Unwanted(const std::shared_ptr<Session>& session, const std::shared_ptr<ActorLink>& link) {
  if (link->dead()) return;
  wire::KillActor kill;
  kill.actor = link->actor();
  kill.unwanted = true;
  const StatusOr<wire::Message> answer = session->Request(std::move(kill));
  const auto* update = answer.ok() ? wire::GetIf<wire::ActorUpdate>(&answer->body) : nullptr;
  if (update == nullptr || !update->info.unwanted) return;
  api::IssueCall(*link, "__ray_terminate__", {}, nullptr).status().IgnoreError();
}

}  // namespace

ActorState::~ActorState() {
  if (!owns_) return;
  // The session's own thread asks: this one may be in a destructor of the program's.
  session_->Later([session = std::weak_ptr<Session>(session_), link = link_] {
    if (const std::shared_ptr<Session> kept = session.lock()) Unwanted(kept, link);
  });
}

void ThrowUnregistered(const std::string& class_name, const char* what) {
  throw InvalidError(std::string(what) + (class_name.empty() ? "" : " of " + class_name) +
                     " is not registered in this program\n  TROUPE_ACTOR(Class(parameters), "
                     "&Class::Method, ...) at namespace scope of one of its source files");
}

AnyRef AnyActor::Issue(const std::string& method, const Value::List& arguments) const {
  if (state_ == nullptr) throw InvalidError("this handle is of no actor");
  StatusOr<std::shared_ptr<RefState>> ref =
      api::IssueCall(state_->link(), method, arguments, state_->owns() ? state_ : nullptr);
  if (!ref.ok()) api::ThrowStatus(ref.status());
  return AnyRef(*std::move(ref));
}

std::string AnyActor::id() const { return state_ == nullptr ? "" : state_->link().actor().Hex(); }

AnyActor CreateActor(const std::string& class_name, const ActorOptions& options,
                     const Value::List& arguments) {
  const std::shared_ptr<Session> session = api::NeedSession();
  wire::CreateActor create;
  create.spec = SpecOf(class_name, options, *session);
  std::string payload;
  if (const Status written = api::WritePickle(Value::OfList(arguments), &payload); !written.ok())
    api::ThrowStatus(written);
  if (payload.size() > kArgumentBytesMax) {
    throw TooLargeError("the arguments of the constructor " + class_name + "() take " +
                        std::to_string(payload.size()) +
                        " bytes, 1 MiB is the limit: give large values by a call");
  }
  const ActorId asked = create.spec.actor;
  const bool detached = create.spec.detached;
  bool fresh = false;
  // Before the request: what is told of it may come first.
  std::shared_ptr<ActorLink> link = session->LinkTo(asked, class_name, &fresh);
  const StatusOr<wire::Message> answer = session->Request(std::move(create), std::move(payload));
  if (!answer.ok()) session->Forget(asked);
  const wire::ActorInfo info = InfoOf(answer);
  if (info.actor != asked) {  // get_if_exists found one
    session->Forget(asked);
    return GetActor(options.name, options.namespace_);
  }
  link->Told(info);
  return AnyActor(std::make_shared<ActorState>(session, std::move(link), !detached));
}

AnyActor GetActor(const std::string& name, const std::string& namespace_) {
  const std::shared_ptr<Session> session = api::NeedSession();
  wire::GetNamedActor get;
  get.name = name;
  get.namespace_ = namespace_.empty() ? session->place().namespace_ : namespace_;
  const wire::ActorInfo info = InfoOf(session->Request(std::move(get)));
  if (info.state == wire::ActorState::kDead)
    throw NotFoundError("the actor " + name + " is dead: " + info.failure.cause);
  bool fresh = false;
  std::shared_ptr<ActorLink> link = session->LinkTo(info.actor, info.class_name, &fresh);
  if (fresh) {
    wire::WatchActor watch;
    watch.actor = info.actor;
    const StatusOr<wire::Message> answer = session->Request(std::move(watch));
    if (!answer.ok()) session->Forget(info.actor);
    link->Told(InfoOf(answer));
  }
  return AnyActor(std::make_shared<ActorState>(session, std::move(link), /*owns=*/false));
}

void Kill(const AnyActor& actor, bool restart) {
  if (!actor.valid()) throw InvalidError("this handle is of no actor");
  ActorState& state = *actor.state();
  wire::KillActor kill;
  kill.actor = state.link().actor();
  kill.no_restart = !restart;
  const StatusOr<wire::Message> answer = state.session().Request(std::move(kill));
  if (!answer.ok()) api::ThrowStatus(answer.status());
  if (!restart)  // a call made after this must not slip in before the process is gone
    state.link().End(ErrorCode::kActorDied, state.link().label() + " was killed by troupe::Kill");
}

}  // namespace troupe
