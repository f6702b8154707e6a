#pragma once

#include <cstdint>
#include <vector>

#include "gallop/tune/sampler.h"

namespace gallop::tune {

/// Options of samplers that train a population.
struct PopulationConfig {
  int64_t population = 8;  ///< Number of members.
  int64_t interval = 0;    ///< Steps of reports between exploit-and-explore decisions.
  int64_t last = 0;        ///< Step of the last report of each member.
  double quantile = 0.25;  ///< Fraction of members that are replaced, and of those that they copy.
  bool synchronous = false;
};

void visit(config::Visitor& visitor, PopulationConfig& config);

/// Trains members of a population in parallel, each in segments of `interval` steps; each segment
/// is a trial. A member's next segment continues from its own checkpoint with its own point, unless
/// it is among the worst `quantile` of the members that have ended a segment: then it starts from
/// the checkpoint of a random one of the best `quantile`, with a point derived from that one's
/// (Jaderberg et al., "Population based training of neural networks", 2017).
///
/// Asynchronous: members are compared by their latest results. Synchronous: a member continues only
/// when all have reached the same step, and they are compared at that step.
///
/// A failed segment is retried once from its beginning, as another trial; after a second failure
/// the member is replaced like the worst.
class PopulationSampler : public Sampler {
 public:
  /// `who`, such as "sampler pbt", prefixes error messages. Throws UsageError if `interval` or
  /// `last` is missing, or the study has several objectives, limits, a pruner, or fewer trials than
  /// segments.
  PopulationSampler(const PopulationConfig& config, const StudySettings& settings, const char* who);

  std::optional<Proposal> ask(const Study& study, int64_t number) final;
  Proposal given(Point point, int64_t number) const final;
  bool is_exhausted(const Study& study) const final;

 protected:
  /// The point for the segment of trial `number`, which starts from the end of `donor`.
  virtual Point explored(const Study& study, const Trial& donor, int64_t number,
                         Random& random) = 0;

 private:
  struct Member;
  struct RankedSegment;

  void follow(const Study& study);
  std::vector<Member> members(const Study& study) const;
  const Member* next(const std::vector<Member>& members) const;
  std::vector<RankedSegment> ranking(const Study& study, const std::vector<Member>& members,
                                     const Member& asking) const;
  Proposal segment(Point point, const Trial* parent, const Member& member) const;

  PopulationConfig config_;
  const char* who_;
  size_t followed_ = 0;
  std::vector<std::vector<int64_t>> trials_;  // By member.
};

}  // namespace gallop::tune
