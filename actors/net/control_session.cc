#include "actors/net/control_session.h"

#include <unistd.h>

#include <optional>
#include <utility>

#include "actors/net/process_revocations.h"
#include "runtime/base/log.h"
#include "runtime/base/secret.h"
#include "runtime/net/files.h"
#include "runtime/net/token.h"
#include "runtime/os/host.h"
#include "runtime/os/self_fence.h"

namespace troupe::actors {
namespace {

StatusOr<wire::Role> RoleOf(const std::string& name) {
  for (const wire::Role role :
       {wire::Role::kClient, wire::Role::kObserver, wire::Role::kWorker, wire::Role::kProcess}) {
    if (name == wire::NameOf(role)) return role;
  }
  return MakeError(ErrorCode::kInvalid,
                   "role is 'client', 'observer', 'worker' or 'process', not '" + name + "'");
}

StatusOr<std::optional<net::Token>> TokenOf(const JoinArguments& arguments) {
  if (arguments.token.empty() && arguments.token_file.empty()) return std::optional<net::Token>();
  Secret text(arguments.token);
  if (text.empty()) {
    TROUPE_ASSIGN(text, net::ReadSecretFile(arguments.token_file));
  }
  StatusOr<net::Token> token = net::ParseToken(text);
  if (token.ok()) return std::optional<net::Token>(*std::move(token));
  const std::string where = arguments.token.empty() ? arguments.token_file + ": " : "";
  return MakeError(ErrorCodeOf(token.status()), where + MessageOf(token.status()));
}

}  // namespace

wire::Hello HelloOf(wire::Role role, const std::string& name, const std::string& python_version) {
  wire::Hello hello;
  hello.role = role;
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  hello.host = host;
  hello.name = name.empty() ? hello.host + ":" + std::to_string(getpid()) : name;
  hello.boot_id = os::BootId();
  hello.pid = getpid();
  hello.python_version = python_version;
  return hello;
}

StatusOr<net::OpenOptions> OpenOptionsOf(const net::Address& address,
                                         const JoinArguments& arguments) {
  net::OpenOptions options(address);
  TROUPE_ASSIGN(const wire::Role role, RoleOf(arguments.role));
  TROUPE_ASSIGN(options.token, TokenOf(arguments));
  options.hello = HelloOf(role, arguments.name, arguments.python_version);
  // A certificate of its own lets this client dial workers.
  if (arguments.certificate) options.key = net::PrivateKey::Generate();
  options.limit = arguments.limit;
  return options;
}

StatusOr<std::shared_ptr<client::ControlClient>> AdoptProcess(UniqueFd fd,
                                                              const std::string& peer) {
  const auto fence = std::make_shared<os::SelfFence>();
  client::PushCallbacks callbacks;
  callbacks["ActorLease"] = [fence](const wire::Message& message) {
    const auto until_ns = wire::Get<wire::ActorLease>(message.body).until_ns;
    const Status armed = fence->Until(Instant(Duration(static_cast<std::int64_t>(until_ns))));
    if (!armed.ok())
      Log(LogLevel::kError, "this actor cannot fence itself", {{"reason", MessageOf(armed)}});
  };
  callbacks["Revoked"] = [](const wire::Message& message) {
    ProcessRevocations().Set(wire::Get<wire::Revoked>(message.body).tokens);
  };
  return client::ControlClient::Adopt(std::move(fd), peer, std::move(callbacks));
}

}  // namespace troupe::actors
