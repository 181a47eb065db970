// Answers of the routes, from views of the head's state that are made on demand.
//
// View: one head process; lives on the HTTP server's loop, held by shared_ptr. Who asks has been
// let in and may ask for it: that was decided before (routes.h).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "head/core/head_core.h"
#include "head/http/acts/caller_request.h"
#include "head/http/earlier_launches.h"
#include "head/http/lists.h"
#include "head/http/message.h"
#include "head/http/refreshed.h"
#include "head/http/routes.h"
#include "head/http/totals.h"
#include "runtime/net/session.h"

namespace troupe::head {

/// The server's requests on the head's loop. All of it must outlive the thread of the server's
/// loop.
struct HeadSide {
  async::Executor executor;
  HeadCore& core;
  const net::SessionRules& rules;
  const ShellWatch& watch;
  const Clock& clock;          // any thread
  std::string journal_folder;  // empty: there is none
  AskAs ask;
  ReadArchive read_archive;    // on the server's thread; null: there is none
  MakeCallerCredentials credentials;
};

class Answers {
 public:
  /// `own` is the loop of the HTTP server.
  Answers(const async::Executor& own, HeadSide head);

  /// 503: the head's loop is held up.
  async::Task<HttpResponse> Tell(RouteMatch match, const HttpRequest& request);
  /// The only launch, or job, of this id, or whose id begins so. kNotFound: none, or several. As of
  /// now where `fresh`.
  async::Task<StatusOr<LaunchRow>> FindLaunch(std::string id, bool is_job, bool fresh);
  async::Task<StatusOr<ActorRow>> FindActor(std::string id, bool fresh);
  /// As of now; nullopt: it is not known any more.
  async::Task<StatusOr<std::optional<NodeRow>>> FindNode(NodeId node);
  /// All launches in the head's memory, as of now.
  async::Task<StatusOr<std::shared_ptr<const ListView<LaunchRow>>>> LaunchesNow();

 private:
  struct Pulse {
    bool read_only = false;
  };
  template <class View>
  using Seen = std::shared_ptr<Refreshed<View>>;

  async::Task<HttpResponse> TellPulse(RouteId id, bool fresh);
  async::Task<HttpResponse> TellMetrics(const HttpRequest& request);
  async::Task<HttpResponse> TellTargets(const HttpRequest& request);
  /// A page of a list, or one row of it.
  template <class Row>
  async::Task<HttpResponse> TellList(Seen<ListView<Row>> list, const HttpRequest& request,
                                     std::string id);
  async::Task<HttpResponse> TellLaunches(const HttpRequest& request, std::string id);
  async::Task<HttpResponse> TellJobs(const HttpRequest& request, std::string id);
  async::Task<HttpResponse> TellEvents(const HttpRequest& request);

  const HeadSide head_;
  const Seen<Pulse> pulse_;
  const Seen<Totals> totals_;
  const Seen<ListView<NodeRow>> nodes_;
  const Seen<ListView<ActorRow>> actors_;
  const Seen<ListView<LaunchRow>> launches_;
  const Seen<ListView<GroupRow>> groups_;
  const Seen<ListView<EventRow>> events_;
  const Seen<DeletedJobs> deleted_jobs_;
  EarlierLaunches earlier_;
};

}  // namespace troupe::head
