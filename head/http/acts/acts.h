// Routes that change something: a job is submitted, a job or a launch is stopped.
//
// View: one head process; lives on the HTTP server's loop. Each change is a request to the reducer
// in the caller's name (caller_request.h), so what a client may not, nobody may by HTTP.
//   HA-1  A request with an id or an Idempotency-Key that comes again starts no second job.
#pragma once

#include <string>
#include <vector>

#include "head/http/acts/job_request.h"
#include "head/http/answers.h"

namespace troupe::head {

class HttpActs {
 public:
  /// `answers` must outlive it.
  HttpActs(HeadSide head, Answers& answers) : head_(std::move(head)), answers_(answers) {}

  /// Handles a POST of a caller that has been let in and may ask for the route.
  async::Task<HttpResponse> Do(RouteMatch match, const HttpRequest& request, HttpCaller caller);

 private:
  struct Submitted {
    LaunchId launch;
    bool fresh = false;  // by this request
  };
  async::Task<HttpResponse> Submit(const HttpRequest& request, HttpCaller caller);
  async::Task<StatusOr<Submitted>> SubmitJob(JobAsked job, HttpCaller caller);
  async::Task<StatusOr<std::vector<LaunchId>>> LaunchesOf(std::vector<std::string> jobs);
  async::Task<StatusOr<Submitted>> SubmitWith(JobAsked job, JobToken token,
                                              std::vector<LaunchId> after, HttpCaller caller);
  async::Task<HttpResponse> Stop(RouteMatch match, const HttpRequest& request, HttpCaller caller);
  async::Task<StatusOr<wire::Message>> Ask(HttpCaller caller, wire::Body body,
                                           std::string attachment = {});

  const HeadSide head_;
  Answers& answers_;
};

}  // namespace troupe::head
