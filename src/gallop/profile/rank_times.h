#pragma once

#include <string>
#include <vector>

#include "gallop/profile/profile.h"

// Processes that share steps, side by side.
namespace gallop::profile {

/// The times of this process, from its trace and the profile of it. Rank and host are left empty.
RankTime rank_time_of(const Trace& trace, const Profile& profile);

/// For another process, and back; throws DataError for anything else.
std::string to_text(const RankTime& time);
RankTime rank_time_from(const std::string& text);

/// Derives what a comparison of the processes shows: which process comes last into collectives, and
/// how far their traces are apart. The last one waits least for the others, whose clocks may
/// differ. Traces of one host have one clock; those of several are aligned at the first collective.
void compare_ranks(std::vector<RankTime>& ranks);

/// (max - min) / mean of the time that processes compute; 0 for less than two.
double rank_skew(const std::vector<RankTime>& ranks);

}  // namespace gallop::profile
