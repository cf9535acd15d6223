#include "msrl/cli/clips.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "msrl/cli/film.h"
#include "msrl/core/check.h"
#include "msrl/files/atomic_file.h"
#include "msrl/run/runner.h"

namespace msrl::cli {
namespace {

namespace fs = std::filesystem;
using report::Clip;
using report::RunScore;

constexpr std::size_t kMostBytes = 400'000;  // of one
constexpr int kMostFrames = 100;
constexpr double kRate = 12.5;  // frames per second: a GIF counts in hundredths of a second
constexpr ImageSize kSizes[] = {{320, 240}, {240, 180}, {160, 120}, {96, 72}};

// Best first.
std::vector<const RunScore*> Candidates(const report::Analysis& analysis, int task) {
  std::vector<const RunScore*> found;
  for (const RunScore& score : analysis.scores) {
    const bool learns = analysis.Method(score.method).role != "reference";
    if (score.task == task && score.final_return && learns) found.push_back(&score);
  }
  std::ranges::stable_sort(found, std::greater<>(),
                           [](const RunScore* score) { return *score->final_return; });
  return found;
}

// A folder for one file, gone at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "msrl-clip-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      throw UserError(StrCat("cannot make a folder for clips in ", fs::temp_directory_path()));
    }
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// As large as fits.
Clip FilmRun(const fs::path& folder, std::size_t most_bytes, const Program& program) {
  const RunDirectory run = RunDirectory::OpenForReading(folder);
  const std::unique_ptr<Agent> agent = LoadAgent(run, program.registries, program.warn);
  const TemporaryFolder work;
  Clip clip;
  for (const ImageSize size : kSizes) {
    BatchEnv envs(program.registries.envs.Make(run.spec().env, run.spec().env_settings));
    Env& env = envs.env(0);
    const std::function<StepResult()> step = BeginEpisode(envs, *agent, /*seed=*/0);
    const std::unique_ptr<View> view = MakeView(env, size, /*sketch=*/false, program);
    clip.still = EncodePng(view->Draw());
    const Pace pace = MakePace(env, kRate);
    const fs::path file = work.path() / "clip.gif";
    const auto video = MakeVideoWriter(file, size, pace.frames_per_second);
    const int limit = std::min(env.horizon(), (kMostFrames - 1) * pace.steps_per_frame);
    const PlayedEpisode played =
        PlayToEnd(env, step, limit, {view.get(), video.get(), pace.steps_per_frame}, [](int) {});
    video->Finish();
    clip.width = size.width;
    clip.height = size.height;
    clip.steps = played.steps;
    clip.ended = played.last.terminated || played.last.truncated;
    clip.episode = played.total;
    clip.gif = ReadWholeFile(file, std::size_t{1} << 28);
    if (clip.gif.size() + clip.still.size() <= most_bytes) return clip;
  }
  throw UserError(StrCat("the smallest clip has ", clip.gif.size(), " bytes, more than its share"));
}

}  // namespace

void AddClips(const report::RunRecords& records, const report::Analysis& analysis,
              const Program& program, report::Exhibits& exhibits) {
  const std::size_t share =
      std::min(kMostBytes, kMaxClipBytes / std::max<std::size_t>(1, analysis.tasks.size()));
  for (int task = 0; task < std::ssize(analysis.tasks); ++task) {
    const std::vector<const RunScore*> candidates = Candidates(analysis, task);
    const std::string problem = report::ShowFirstOf(candidates, [&](const RunScore& score) {
      Clip clip = FilmRun(records.folder / score.run->path, share, program);
      clip.of = &score;
      clip.runs = static_cast<int>(candidates.size());
      exhibits.clips.push_back(std::move(clip));
    });
    if (!problem.empty()) {
      exhibits.problems.push_back(
          {analysis.TaskName(task), StrCat("no clip, the best run is ", problem)});
    }
  }
}

}  // namespace msrl::cli
