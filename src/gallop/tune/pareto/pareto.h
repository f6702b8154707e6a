#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gallop/tune/trial.h"

// Multi-objective functions. All losses are minimized; NaN counts as infinity.
namespace gallop::tune {

class GreedySelection;

/// Loss vectors, one row each, with one loss per objective.
using LossRows = std::vector<std::vector<double>>;

/// Whether `a` dominates `b`: at most `b` in every objective and below it in at least one.
bool dominates(const std::vector<double>& a, const std::vector<double>& b);

/// The total constraint violation of a trial: the sum of its positive violations.
double total_violation(const Trial& trial);

/// Indices, ascending, of the non-dominated rows; the first of several equal rows.
std::vector<size_t> nondominated(const LossRows& losses);

/// Non-dominated sorting: rank 0 are the non-dominated rows, rank 1 those that are non-dominated
/// without rank 0, and so on. O(n log n) with two objectives (Jensen, 2003), at most O(n²) with
/// more (Zhang et al., "An efficient approach to nondominated sorting", 2015).
std::vector<int32_t> domination_ranks(const LossRows& losses);

/// Constrained domination: feasible rows (violation at most 0) come first, infeasible ones after
/// them by their violation alone (Deb et al., 2002).
std::vector<int32_t> domination_ranks(const LossRows& losses,
                                      const std::vector<double>& violations);

/// The crowding distance of each row of one rank: the distance between its neighbors relative to
/// the range, summed over objectives; infinite at the ends (Deb et al., 2002).
std::vector<double> crowding_distances(const LossRows& losses);

/// The worst loss in each objective made 10% worse; never 0.
std::vector<double> reference_point(const LossRows& losses);

/// The hypervolume that the rows dominate up to `reference`; rows not below it in every objective
/// add nothing. Infinite if a row or the reference is. O(n log n) for two and three objectives (by
/// a sweep), and a factor n for each further one (While et al., "A fast way of calculating exact
/// hypervolumes", 2012).
double hypervolume(const LossRows& losses, const std::vector<double>& reference);

/// The hypervolume improvement that `row` adds to others. No value is NaN.
double added_volume(const std::vector<double>& row, std::span<const std::vector<double>> others,
                    const std::vector<double>& reference);

/// The exclusive contribution of each row to the hypervolume.
std::vector<double> hypervolume_contributions(const LossRows& losses,
                                              const std::vector<double>& reference);

/// Greedy hypervolume subset selection: indices of `count` rows (or all), each of which adds the
/// most hypervolume to those before it (Guerreiro, Fonseca and Paquete, "Greedy hypervolume subset
/// selection in low dimensions", 2016). For rows of one rank; duplicates are taken last.
std::vector<size_t> select_by_hypervolume(const LossRows& losses, size_t count,
                                          const std::vector<double>& reference);

/// The same, faster if few rows were added or removed since the last call with `last`.
std::vector<size_t> select_by_hypervolume(const LossRows& losses, size_t count,
                                          const std::vector<double>& reference,
                                          GreedySelection& last);

/// The row indices of each rank, ascending.
std::vector<std::vector<size_t>> fronts_of(const std::vector<int32_t>& ranks);

/// Indices of the `count` best rows (or all): by rank, and within the last rank that fits by
/// select_by_hypervolume() with that rank's reference_point().
std::vector<size_t> best_rows(const LossRows& losses, size_t count);

}  // namespace gallop::tune
