// A view of the head's state that is made anew only while somebody looks, and seldom enough.
//
//   RV-1  The head's loop makes a view in slices, with everything else it has to do in between.
//   RV-2  Two views begin at least kMaxAge apart, and the head's loop spends at most a twentieth of
//         its time on one kind of view.
//   RV-3  Get() gives a view that began at most kMaxAge ago, or after the call where `fresh`.
//
// View: one head process. Lives on the HTTP server's loop, held by shared_ptr; all calls on it. A
// view is immutable once made.
#pragma once

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "head/http/head_link.h"

namespace troupe::head {

template <class View>
class Refreshed : public std::enable_shared_from_this<Refreshed<View>> {
 public:
  static constexpr std::chrono::milliseconds kMaxAge{250};
  static constexpr int kShare = 20;
  /// Makes the next slice, on the head's loop; true: the view is whole. A new one for each view.
  using Slice = std::function<bool(View&)>;
  using Begin = std::function<Slice()>;
  using Result = StatusOr<std::shared_ptr<const View>>;

  Refreshed(async::Executor own, async::Executor head, const Clock& clock, Begin begin)
      : own_(std::move(own)),
        head_(std::move(head)),
        clock_(clock),
        begin_(std::move(begin)),
        pause_(own_) {}

  async::Task<Result> Get(bool fresh) {
    const Instant wanted = fresh ? clock_.Now() : clock_.Now() - kMaxAge;
    async::asio::steady_timer timer(own_, kHeadAnswerLimit);
    const Waiting waiting(waiting_, timer);
    const Instant end = clock_.Now() + kHeadAnswerLimit;
    while (latest_ == nullptr || latest_began_ < wanted) {
      if (clock_.Now() >= end) co_return HeadDoesNotAnswer();
      MakeOne();
      co_await timer.async_wait(async::kTuple);
    }
    co_return latest_;
  }

 private:
  struct Waiting {
    Waiting(std::set<async::asio::steady_timer*>& all, async::asio::steady_timer& mine)
        : all_(all), mine_(&mine) {
      all_.insert(mine_);
    }
    ~Waiting() { all_.erase(mine_); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    std::set<async::asio::steady_timer*>& all_;
    async::asio::steady_timer* mine_;
  };
  struct Making {
    std::shared_ptr<View> view = std::make_shared<View>();
    Slice slice;
    Instant began{};
    Duration cost{};
  };

  void MakeOne() {
    if (std::exchange(making_, true)) return;
    pause_.expires_after(std::max<Duration>(next_ - clock_.Now(), Duration(0)));
    pause_.async_wait([self = this->shared_from_this()](const auto& error) {
      if (error) return;
      auto making = std::make_shared<Making>();
      async::asio::post(self->head_, [self, making] { self->OnHead(making); });
    });
  }

  /// On the head's loop.
  void OnHead(std::shared_ptr<Making> making) {
    const Instant now = clock_.Now();
    if (!making->slice) {
      making->slice = begin_();
      making->began = now;
    }
    const bool whole = making->slice(*making->view);
    making->cost += clock_.Now() - now;
    if (whole) {
      async::asio::post(own_, [self = this->shared_from_this(), making] { self->OnMade(*making); });
    } else {
      async::asio::post(head_, [self = this->shared_from_this(), making] { self->OnHead(making); });
    }
  }

  void OnMade(const Making& making) {
    latest_ = making.view;
    latest_began_ = making.began;
    next_ = std::max(making.began + kMaxAge, clock_.Now() + making.cost * kShare);
    making_ = false;
    for (async::asio::steady_timer* timer : waiting_) timer->cancel();
  }

  const async::Executor own_;
  const async::Executor head_;
  const Clock& clock_;
  const Begin begin_;
  async::asio::steady_timer pause_;
  std::shared_ptr<const View> latest_;
  Instant latest_began_{};
  Instant next_{};
  bool making_ = false;
  std::set<async::asio::steady_timer*> waiting_;
};

}  // namespace troupe::head
