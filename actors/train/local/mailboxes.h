// The mailboxes between this rank and all others of its group, on whichever node they are.
#pragma once

#include "actors/train/core/places.h"
#include "actors/train/local/connections.h"
#include "actors/train/local/shared_area.h"

namespace troupe::train {

class Mailboxes {
 public:
  /// `connections`: null where the group is on one node. All must outlive it.
  Mailboxes(SharedArea& area, const Places& places, Connections* connections)
      : area_(area), places_(places), connections_(connections) {}

  /// Begins to read from other nodes.
  void Begin() const {
    for (int peer = 0; peer < size(); ++peer)
      if (!places_.is_here(peer)) Ring(peer);
  }
  SharedArea& area() const { return area_; }
  int rank() const { return places_.rank(); }
  int size() const { return places_.size(); }
  std::size_t bytes() const { return area_.mailbox_bytes(); }
  Mailbox& from(int peer) const {
    return places_.is_here(peer) ? area_.mailbox(places_.place_of(peer), area_.rank())
                                 : connections_->mail(peer).incoming();
  }
  Mailbox& to(int peer) const {
    return places_.is_here(peer) ? area_.mailbox(area_.rank(), places_.place_of(peer))
                                 : connections_->mail(peer).outgoing();
  }
  /// Nothing more comes of it than what is in its mailbox.
  bool gone(int peer) const {
    return places_.is_here(peer) ? area_.gone(peer) : connections_->mail(peer).ended();
  }
  /// Returns true if letters in the mailbox to it before this place outlive this process.
  bool is_kept(int peer, std::uint64_t place) const {
    return places_.is_here(peer) || connections_->mail(peer).outgoing().read.load() >= place;
  }
  /// Something was put into the one to it, or taken from the one from it.
  void Ring(int peer) const {
    if (places_.is_here(peer))
      area_.Ring(places_.place_of(peer));
    else
      connections_->mail(peer).Ring();
  }

 private:
  SharedArea& area_;
  const Places& places_;
  Connections* const connections_;
};

}  // namespace troupe::train
