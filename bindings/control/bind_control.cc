#include "bindings/control/bind_control.h"

#include "bindings/control/control_convert.h"
#include "bindings/control/control_object.h"
#include "bindings/support/nanobind.h"
#include "runtime/net/address.h"
#include "runtime/net/run_secret.h"
#include "runtime/net/token.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace troupe::bindings {
namespace {

using Control = ControlObject;

/// None, str or bytes as text.
std::string TextOf(nb::handle object) {
  if (object.is_none()) return {};
  if (nb::isinstance<nb::bytes>(object)) {
    const auto bytes = nb::borrow<nb::bytes>(object);
    return std::string(bytes.c_str(), bytes.size());
  }
  return nb::cast<std::string>(object);
}

net::Address CheckedAddress(StatusOr<net::Address> address) {
  if (!address.ok()) ThrowStatus(address.status());
  return *std::move(address);
}

std::unique_ptr<Control> Connect(const std::string& host, std::optional<int> port, nb::object token,
                                 std::optional<std::string> token_file, const std::string& role,
                                 const std::string& name, double timeout, double return_timeout) {
  ConnectArguments arguments;
  arguments.return_s = return_timeout;
  arguments.role = role;
  arguments.name = name;
  arguments.token = TextOf(token);
  arguments.token_file = token_file.value_or("");
  arguments.timeout_s = timeout;
  return Control::Connect(
      CheckedAddress(port ? net::TcpAddress(host, *port) : net::ParseAddress(host)), arguments);
}

std::unique_ptr<Control> ConnectUnix(const std::string& path, const std::string& role,
                                     const std::string& name, double timeout, bool certificate,
                                     double return_timeout) {
  ConnectArguments arguments;
  arguments.return_s = return_timeout;
  arguments.certificate = certificate;
  arguments.role = role;
  arguments.name = name;
  arguments.timeout_s = timeout;
  return Control::Connect(CheckedAddress(net::UnixAddress(path)), arguments);
}

nb::dict CheckToken(nb::object text) {
  const StatusOr<net::Token> token = net::ParseToken(Secret(TextOf(text)));
  if (!token.ok()) ThrowStatus(token.status());
  nb::dict facts;
  facts["role"] = wire::NameOf(token->role);
  facts["cluster_id"] = token->cluster().Hex();
  facts["id"] = token->id.Hex();
  return facts;
}

nb::dict DeriveRun(nb::bytes secret, const std::string& run) {
  const StatusOr<net::RunSecret> derived =
      net::DeriveRun(Secret(std::string(secret.c_str(), secret.size())), run);
  if (!derived.ok()) ThrowStatus(derived.status());
  nb::dict facts;
  facts["worker_token"] = std::string(net::FormatToken(derived->worker).Reveal());
  facts["client_token"] = std::string(net::FormatToken(derived->client).Reveal());
  facts["cluster_id"] = derived->worker.cluster().Hex();
  facts["port"] = derived->port;
  return facts;
}

nb::object Welcome(const Control& control) {
  wire::Message message;
  message.body = control.client().joined().welcome;
  return MessageToPython(message)[1];
}

void BindControlClient(nb::module_& m) {
  nb::class_<Control>(
      m, "ControlClient",
      "A control connection: requests from any thread, pushes by next_push().\n"
      "Waits release the GIL and end at Ctrl-C. A lost connection is a ConnectionError.")
      .def_static("connect", &Connect, "host"_a, "port"_a = nb::none(), nb::kw_only(),
                  "token"_a = nb::none(), "token_file"_a = nb::none(), "role"_a = "client",
                  "name"_a = "", "timeout"_a = 5.0, "return_timeout"_a = 0.0,
                  "To a head: `host` and `port`, or an address text (host:port, unix:path) alone. "
                  "A lost connection is\n"
                  "sought again for `return_timeout` seconds; pushes then tell: ErrorReply when "
                  "lost, Welcome when back.")
      .def_static("connect_unix", &ConnectUnix, "path"_a, nb::kw_only(), "role"_a = "client",
                  "name"_a = "", "timeout"_a = 5.0, "certificate"_a = true,
                  "return_timeout"_a = 0.0,
                  "To a head of this user on this host; to a worker with certificate=False, since "
                  "it issues none.")
      .def_static("adopt", &Control::Adopt, "fd"_a, nb::kw_only(), "peer"_a = "the worker",
                  "Over an inherited Unix stream socket; takes the descriptor.")
      .def("connect_worker", &Control::ConnectWorker, "host"_a, "port"_a, "node"_a = "",
           nb::kw_only(), "timeout"_a = 5.0,
           "To a worker on another host, by this client's certificate.")
      .def("request", &Control::Request, "kind"_a, "fields"_a, "attachment"_a = nb::bytes("", 0),
           "timeout"_a = nb::none(),
           "Sends a request and returns its answer: (kind, fields, attachment). Raises what an "
           "ErrorReply says.")
      .def("ask", &Control::Ask, "kind"_a, "fields"_a, "attachment"_a = nb::bytes("", 0),
           "Sends a request and does not wait; its answer is dropped, a refusal comes by "
           "next_push. False: it is not sent,\n"
           "since a thousand are under way.")
      .def("send", &Control::Send, "kind"_a, "fields"_a, "attachment"_a = nb::bytes("", 0),
           "Queues a one-way message; does not wait.")
      .def("next_push", &Control::NextPush, "timeout"_a = nb::none(),
           "The oldest message that is no answer: (kind, fields, attachment), or None after "
           "`timeout` seconds.\n"
           "What refuses a request of ask() is an ErrorReply with that request behind it, of the "
           "same form.")
      .def("next_pushes", &Control::NextPushes,
           "All that next_push() would give now, a hundred at most, oldest first; blocks until "
           "there is one.")
      .def("close", &Control::Close, "Sends what is queued and closes. Idempotent.")
      .def_prop_ro("peer", [](const Control& self) { return self.client().peer(); })
      .def_prop_ro("connected", [](const Control& self) { return self.client().status().ok(); })
      .def_prop_ro(
          "clock_warning", [](const Control& self) { return self.client().joined().clock_warning; },
          "A sentence when this machine's clock differs from the head's, or ''.")
      .def_prop_ro("welcome", &Welcome, "The fields of the head's Welcome; defaults when adopted.");
}

}  // namespace

void bind_control(nb::module_& m) {
  BindControlCodec(m);
  BindControlClient(m);
  m.def("check_token", &CheckToken, "text"_a,
        "Role, cluster_id and id of a join token; ValueError says what is wrong with one that is "
        "damaged.");
  m.def("derive_run", &DeriveRun, "secret"_a, "run"_a,
        "What the nodes of a `troupe run` derive from its secret: worker_token, client_token, "
        "cluster_id, port.");
}

}  // namespace troupe::bindings
