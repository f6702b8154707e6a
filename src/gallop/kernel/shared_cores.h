#pragma once

namespace gallop::kernel {

/// Whether the threads that compute are set up to run beside other programs.
///
/// OpenMP's threads wait by spinning, for up to 10 ms: fastest where the cores are theirs alone.
/// Where other programs take turns on them, one that spins keeps the core from the one that it
/// waits for, and a step takes many times its share of the machine. Two things are done then:
///
/// - GNU's OpenMP spins a hundredth of that once a process has more OpenMP threads than cores; so
///   threads that only sleep make it give up its cores.
/// - Each thread stays on a core of its own, where there are as many as cores. Otherwise the system
///   leaves two of them on one core and another program on the other, and barriers that always
///   spin, as oneDNN has in gradients of convolutions, cost a turn of the scheduler each.
///
/// No result changes; a step alone on its cores takes longer, up to twice as long. One thread calls
/// these, the one that starts the work of all.
void share_cores(bool share);
bool shares_cores();

/// To be called at each step of training, evaluation or prediction: looks a few times a second
/// whether a thread that computes has waited for its core, and not for other threads of this
/// program, and shares the cores while that is so.
void share_cores_with_others();

/// When to share, and when to try again whether others are still there: after half a second, or
/// twice as long as the last time where that was too soon.
class Sharing {
 public:
  /// Of a look at `now` in seconds: the longest that a thread waited, as a share of the time
  /// between two looks. Returns whether to share from now on.
  bool look(double now, double waited);

 private:
  bool shares_ = false;
  double disturbed_at_ = 0, left_at_ = 0;
  double patience_ = 0;  ///< Seconds.
};

}  // namespace gallop::kernel
