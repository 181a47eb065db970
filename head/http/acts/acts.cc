#include "head/http/acts/acts.h"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <cmath>
#include <csignal>
#include <utility>

#include "head/http/json_response.h"
#include "runtime/async/os_random.h"

namespace troupe::head {
namespace {

namespace json = boost::json;
using async::Task;

constexpr std::uint64_t kJobTokenLifeS = 10ull * 365 * 24 * 3600;  // ends with the job
constexpr char kJobsScope[] = "jobs";
constexpr double kGraceMaxS = 86400;

HttpResponse FailureOf(const Status& status) {
  switch (ErrorCodeOf(status)) {
    case ErrorCode::kInvalid:
    case ErrorCode::kInfeasible:
      return ErrorResponse(400, MessageOf(status));
    case ErrorCode::kNotFound:
    case ErrorCode::kUnknownOutcome:
      return ErrorResponse(404, MessageOf(status));
    case ErrorCode::kAlreadyExists:
      return ErrorResponse(409, MessageOf(status));
    case ErrorCode::kTooLarge:
      return ErrorResponse(429, MessageOf(status));
    default:
      return ErrorResponse(503, MessageOf(status));
  }
}

/// The row with this id, or the only one whose id begins so.
const LaunchRow* FindRow(const ListView<LaunchRow>& view, const std::string& id, bool by_job) {
  const LaunchRow* found = nullptr;
  for (const LaunchRow& row : view.rows) {
    const std::string own = by_job ? row.job : row.info.launch.Hex();
    if (by_job && row.job.empty()) continue;
    if (own == id) return &row;
    if (id.empty() || !own.starts_with(id)) continue;
    if (found != nullptr) return nullptr;
    found = &row;
  }
  return found;
}

/// `{"grace_s": 5, "reason": "..."}`, both left out as one likes; no body is none of them.
StatusOr<wire::CancelLaunch> ReadStop(const std::string& body) {
  wire::CancelLaunch cancel;
  cancel.hard = true;
  cancel.signal = SIGTERM;
  cancel.reason = "stopped over HTTP";
  if (body.empty()) return cancel;
  boost::system::error_code error;
  const json::value parsed = json::parse(body, error);
  if (error || !parsed.is_object())
    return MakeError(ErrorCode::kInvalid, "the body must be a JSON object, or there is none");
  for (const auto& [name, value] : parsed.get_object()) {
    if (name == "grace_s" && value.is_number()) {
      const double grace_s = value.to_number<double>(error);
      if (error || !(grace_s >= 0 && grace_s <= kGraceMaxS))
        return MakeError(ErrorCode::kInvalid, "grace_s must be from 0 to 86400");
      cancel.grace_ms = static_cast<std::int32_t>(std::llround(grace_s * 1000));
    } else if (name == "reason" && value.is_string() && value.get_string().size() <= 500) {
      cancel.reason = std::string(value.get_string().data(), value.get_string().size());
    } else {
      return MakeError(ErrorCode::kInvalid,
                       "a stop has grace_s, a number, and reason, a text of at most 500 bytes");
    }
  }
  return cancel;
}

}  // namespace

Task<HttpResponse> HttpActs::Do(RouteMatch match, const HttpRequest& request, HttpCaller caller) {
  if (match.route->id == RouteId::kSubmitJob) {
    auto submitting = Submit(request, std::move(caller));
    co_return co_await std::move(submitting);
  }
  auto stopping = Stop(std::move(match), request, std::move(caller));
  co_return co_await std::move(stopping);
}

Task<StatusOr<wire::Message>> HttpActs::Ask(HttpCaller caller, wire::Body body,
                                            std::string attachment) {
  auto asking = AskAsCaller(head_.executor, head_.ask, std::move(caller), std::move(body),
                            std::move(attachment));
  co_return co_await std::move(asking);
}

Task<HttpResponse> HttpActs::Submit(const HttpRequest& request, HttpCaller caller) {
  StatusOr<JobAsked> job = ReadJobAsked(request.body, request.idempotency_key);
  if (!job.ok()) co_return FailureOf(job.status());
  if (job->id.empty()) {
    async::OsRandom random;
    job->id = "job-" + RequestId::Random(random).Hex().substr(0, 12);
  }
  const std::string id = job->id;
  auto submitting = SubmitJob(*std::move(job), std::move(caller));
  const StatusOr<Submitted> submitted = co_await std::move(submitting);
  if (!submitted.ok()) co_return FailureOf(submitted.status());
  const json::object document{{"id", id}, {"launch", submitted->launch.Hex()}};
  co_return JsonResponse(document, submitted->fresh ? 201 : 200);
}

Task<StatusOr<HttpActs::Submitted>> HttpActs::SubmitJob(JobAsked job, HttpCaller caller) {
  auto finding = LaunchesOf(job.after);
  TROUPE_CO_ASSIGN(const std::vector<LaunchId> after, co_await std::move(finding));
  wire::CreateToken create;
  create.role = wire::Role::kClient;
  create.ttl_s = kJobTokenLifeS;
  create.note = "job " + job.id;
  auto creating = Ask(caller, std::move(create));
  TROUPE_CO_ASSIGN(const wire::Message created, co_await std::move(creating));
  const auto* made = wire::GetIf<wire::TokenCreated>(&created.body);
  if (made == nullptr) co_return MakeError(ErrorCode::kInternal, "the head made no token");
  const JobToken token{made->id, made->token};
  auto submitting = SubmitWith(std::move(job), token, after, caller);
  StatusOr<Submitted> submitted = co_await std::move(submitting);
  if (!submitted.ok() || !submitted->fresh) {  // nobody has it: it only takes room
    wire::RevokeToken revoke;
    revoke.id = token.id;
    auto revoking = Ask(caller, std::move(revoke));
    static_cast<void>(co_await std::move(revoking));
  }
  co_return submitted;
}

Task<StatusOr<std::vector<LaunchId>>> HttpActs::LaunchesOf(std::vector<std::string> jobs) {
  std::vector<LaunchId> launches;
  if (jobs.empty()) co_return launches;
  auto listing = answers_.LaunchesNow();
  TROUPE_CO_ASSIGN(const auto view, co_await std::move(listing));
  for (const std::string& job : jobs) {
    const LaunchRow* row = FindRow(*view, job, true);
    if (row == nullptr) {
      co_return MakeError(ErrorCode::kInvalid,
                          "after: there is no job, or there are several, whose id begins with " +
                              job.substr(0, 100));
    }
    launches.push_back(row->info.launch);
  }
  co_return launches;
}

Task<StatusOr<HttpActs::Submitted>> HttpActs::SubmitWith(JobAsked job, JobToken token,
                                                         std::vector<LaunchId> after,
                                                         HttpCaller caller) {
  wire::KvGet get;
  get.scope = kJobsScope;
  get.key = "id/" + job.id;
  auto getting = Ask(caller, std::move(get));
  TROUPE_CO_ASSIGN(const wire::Message deleted, co_await std::move(getting));
  wire::SubmitLaunch submit = SubmissionOf(job, token, after, deleted.attachment);
  std::string payload = PayloadOf(job, token);
  auto submitting = Ask(caller, std::move(submit), std::move(payload));
  TROUPE_CO_ASSIGN(const wire::Message answer, co_await std::move(submitting));
  const auto* accepted = wire::GetIf<wire::LaunchAccepted>(&answer.body);
  if (accepted == nullptr) co_return MakeError(ErrorCode::kInternal, "the head took no launch");
  wire::GetLaunch look;
  look.launch = accepted->launch;
  auto looking = Ask(caller, std::move(look));
  TROUPE_CO_ASSIGN(const wire::Message found, co_await std::move(looking));
  const auto* update = wire::GetIf<wire::LaunchUpdate>(&found.body);
  Submitted submitted{accepted->launch, true};
  if (update == nullptr) co_return submitted;
  const std::vector<std::string>& travelled = update->info.travelled;
  if (AboutOf(travelled, "digest") != job.digest) {
    co_return MakeError(ErrorCode::kAlreadyExists,
                        "there is a job " + job.id + " already, with another content\n  give "
                        "another id, or delete that job first: troupe job delete " + job.id);
  }
  submitted.fresh = AboutOf(travelled, "token") == token.id.Hex();
  co_return submitted;
}

Task<HttpResponse> HttpActs::Stop(RouteMatch match, const HttpRequest& request,
                                  HttpCaller caller) {
  StatusOr<wire::CancelLaunch> cancel = ReadStop(request.body);
  if (!cancel.ok()) co_return FailureOf(cancel.status());
  auto listing = answers_.LaunchesNow();
  const auto view = co_await std::move(listing);
  if (!view.ok()) co_return FailureOf(view.status());
  const LaunchRow* row = FindRow(**view, match.id, match.route->id == RouteId::kStopJob);
  if (row == nullptr) {
    co_return ErrorResponse(404, "there is none with this id, or several ids begin so");
  }
  const LaunchId launch = row->info.launch;
  const std::string job = row->job;
  cancel->launch = launch;
  auto cancelling = Ask(std::move(caller), *std::move(cancel));
  const StatusOr<wire::Message> answer = co_await std::move(cancelling);
  if (!answer.ok()) co_return FailureOf(answer.status());
  const auto* update = wire::GetIf<wire::LaunchUpdate>(&answer->body);
  const bool over = update != nullptr && update->info.state == wire::LaunchState::kTerminal;
  json::object document{{"launch", launch.Hex()}, {"has_ended", over}};
  if (!job.empty()) document["id"] = job;
  co_return JsonResponse(document, over ? 200 : 202);
}

}  // namespace troupe::head
