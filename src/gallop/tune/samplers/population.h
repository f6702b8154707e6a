#pragma once

#include <cstdint>
#include <vector>

#include "gallop/tune/sampler.h"

namespace gallop::tune {

/// Options of samplers that train a population.
struct PopulationConfig {
  int64_t population = 8;  ///< Members.
  int64_t interval = 0;    ///< Steps of a segment of training.
  int64_t last = 0;        ///< Step at which a member's training ends.
  double quantile = 0.25;  ///< Share that gives way to others, and share that they are taken from.
  bool synchronous = false;
};

void visit(config::Visitor& visitor, PopulationConfig& config);

/// Trains members of a population side by side, each in segments of `interval` steps, of which
/// each is a trial. Once a member's segment has ended, its next one begins from its own checkpoint
/// with its own point, unless the member is among the worst `quantile` of those that have ended a
/// segment: then it begins from the checkpoint of a random one of the best `quantile`, with a point
/// near that one's (Jaderberg et al., "Population based training of neural networks", 2017).
///
/// Asynchronous: members are compared by what each has reached when a worker asks. Synchronous: a
/// member goes on only when all have come as far, and they are compared at that step.
///
/// A segment that fails is tried once more from where it began, as another trial; where that fails
/// too, the member gives way like the worst.
class PopulationSampler : public Sampler {
 public:
  /// `who`, as "sampler pbt", is for messages. Throws UsageError where `interval` or `last` is not
  /// given, or the study has several objectives, limits, a pruner, or fewer trials than segments.
  PopulationSampler(const PopulationConfig& config, const StudySettings& settings, const char* who);

  std::optional<Proposal> ask(const Study& study, int64_t number) final;
  Proposal given(Point point, int64_t number) const final;
  bool is_exhausted(const Study& study) const final;

 protected:
  /// A point for the segment of trial `number` that begins where `donor` ended.
  virtual Point explored(const Study& study, const Trial& donor, int64_t number,
                         Random& random) = 0;

 private:
  struct Member;
  struct Standing;

  void follow(const Study& study);
  std::vector<Member> members(const Study& study) const;
  const Member* next(const std::vector<Member>& members) const;
  std::vector<Standing> standings(const Study& study, const std::vector<Member>& members,
                                  const Member& asking) const;
  Proposal segment(Point point, const Trial* parent, const Member& member) const;

  PopulationConfig config_;
  const char* who_;
  size_t followed_ = 0;
  std::vector<std::vector<int64_t>> trials_;  // Of each member.
};

}  // namespace gallop::tune
