#include "head/http/logs/worker_link.h"

#include <unistd.h>

#include <utility>

#include "runtime/async/deadline.h"
#include "runtime/net/open_session.h"
#include "runtime/os/host.h"

namespace troupe::head {
namespace {

using async::Task;

Task<StatusOr<wire::Message>> AnswerTo(std::shared_ptr<net::Connection> connection,
                                       std::uint64_t id) {
  for (;;) {
    TROUPE_CO_ASSIGN(wire::Message message, co_await connection->Receive());
    if (message.reply_to == id) co_return message;
  }
}

}  // namespace

Task<StatusOr<wire::Message>> WorkerLink::Ask(wire::Body body, Duration limit) {
  const std::shared_ptr<net::Connection> connection = connection_;
  wire::Message request;
  request.id = next_id_++;
  request.body = std::move(body);
  TROUPE_CO_TRY(connection->Send(request));
  auto receiving = AnswerTo(connection, request.id);
  std::string what = "an answer of the worker at " + connection->peer().address;
  StatusOr<wire::Message> answer =
      co_await async::WithDeadline(std::move(receiving), limit, std::move(what));
  if (!answer.ok()) co_return answer.status();
  if (const auto* error = wire::GetIf<wire::ErrorReply>(&answer->body))
    co_return MakeError(static_cast<ErrorCode>(error->code), error->text);
  co_return answer;
}

void WorkerLink::Close() {
  connection_->Close(MakeError(ErrorCode::kConnection, "nobody waits for the answer any more"));
}

Task<StatusOr<std::shared_ptr<WorkerLink>>> DialWorker(wire::NodeInfo node, HttpCaller caller,
                                                       MakeCallerCredentials credentials,
                                                       const Clock& clock) {
  net::Address address;
  address.host = node.listen_host;
  address.port = node.listen_port;
  net::OpenOptions options(std::move(address));
  TROUPE_CO_ASSIGN(options.credentials, credentials(caller.role, caller.token));
  options.expected.role = wire::Role::kWorker;
  options.expected.id = node.node;
  options.hello.role = caller.role;
  options.hello.name = "HTTP server of the head";
  options.hello.boot_id = os::BootId();
  options.hello.pid = getpid();
  auto opening = net::OpenSession(std::move(options), clock);
  TROUPE_CO_ASSIGN(net::OpenedSession opened, co_await std::move(opening));
  co_return std::make_shared<WorkerLink>(std::move(opened.connection));
}

}  // namespace troupe::head
