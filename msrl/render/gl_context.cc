#include "msrl/render/gl_context.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "msrl/core/text.h"

namespace msrl {
namespace {

// The few functions and constants that are used are declared here, so that no OpenGL package is
// needed to build.
constexpr int kDepthBits = 24;
constexpr int kStencilBits = 8;

class Library {
 public:
  // The first of the names that exists.
  Library(std::initializer_list<const char*> names) {
    for (const char* name : names) {
      handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (handle_ != nullptr) return;
      error_ += StrCat(error_.empty() ? "no " : " or ", name);
    }
  }
  bool loaded() const { return handle_ != nullptr; }
  const std::string& error() const { return error_; }
  template <typename Function>
  bool Find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(dlsym(handle_, name));
    return function != nullptr;
  }

 private:
  void* handle_ = nullptr;
  std::string error_;
};

// ---- OSMesa: OpenGL in software, into memory.

using OsMesaContext = void;
constexpr unsigned kGlRgba = 0x1908;
constexpr unsigned kGlUnsignedByte = 0x1401;

struct OsMesa {
  Library library{"libOSMesa.so.8", "libOSMesa.so.6"};
  OsMesaContext* (*create)(unsigned, int, int, int, OsMesaContext*) = nullptr;
  unsigned char (*make_current)(OsMesaContext*, void*, unsigned, int, int) = nullptr;
  void (*destroy)(OsMesaContext*) = nullptr;

  bool Load() {
    return library.Find("OSMesaCreateContextExt", create) &&
           library.Find("OSMesaMakeCurrent", make_current) &&
           library.Find("OSMesaDestroyContext", destroy);
  }
};

class OsMesaGlContext : public GlContext {
 public:
  OsMesaGlContext(const OsMesa& functions, OsMesaContext* context)
      : functions_(functions), context_(context) {}
  OsMesaGlContext(const OsMesaGlContext&) = delete;
  OsMesaGlContext& operator=(const OsMesaGlContext&) = delete;
  ~OsMesaGlContext() override { functions_.destroy(context_); }
  void MakeCurrent() override { Current(); }
  bool Current() {
    return functions_.make_current(context_, screen_.data(), kGlUnsignedByte, kSide, kSide) != 0;
  }
  const char* name() const override { return "OSMesa"; }

 private:
  static constexpr int kSide = 16;
  const OsMesa& functions_;
  OsMesaContext* context_;
  // nobody looks at it: pictures are drawn into MuJoCo's own buffer
  std::array<unsigned char, 4UL * kSide * kSide> screen_{};
};

std::unique_ptr<GlContext> MakeOsMesa(std::string& why_not) {
  static OsMesa functions;
  if (!functions.library.loaded()) {
    why_not = functions.library.error();
    return nullptr;
  }
  void* context =
      functions.Load() ? functions.create(kGlRgba, kDepthBits, kStencilBits, 0, nullptr) : nullptr;
  if (context != nullptr) {
    auto made = std::make_unique<OsMesaGlContext>(functions, context);
    if (made->Current()) return made;
  }
  why_not = "OSMesa gives no context";
  return nullptr;
}

// ---- EGL without a surface: the graphics card's driver, or Mesa's software.

constexpr unsigned kEglSurfacelessMesa = 0x31DD;
constexpr unsigned kEglPlatformDevice = 0x313F;
constexpr unsigned kEglOpenGlApi = 0x30A2;
constexpr int kEglNone = 0x3038;
constexpr int kEglSurfaceType = 0x3033;
constexpr int kEglPbufferBit = 0x0001;
constexpr int kEglRenderableType = 0x3040;
constexpr int kEglOpenGlBit = 0x0008;
constexpr int kMaxDevices = 16;

struct Egl {
  Library library{"libEGL.so.1"};
  void* (*get_proc_address)(const char*) = nullptr;
  unsigned (*initialize)(void*, int*, int*) = nullptr;
  unsigned (*bind_api)(unsigned) = nullptr;
  unsigned (*choose_config)(void*, const int*, void**, int, int*) = nullptr;
  void* (*create_context)(void*, void*, void*, const int*) = nullptr;
  unsigned (*make_current)(void*, void*, void*, void*) = nullptr;
  unsigned (*destroy_context)(void*, void*) = nullptr;

  bool Load() {
    return library.Find("eglGetProcAddress", get_proc_address) &&
           library.Find("eglInitialize", initialize) && library.Find("eglBindAPI", bind_api) &&
           library.Find("eglChooseConfig", choose_config) &&
           library.Find("eglCreateContext", create_context) &&
           library.Find("eglMakeCurrent", make_current) &&
           library.Find("eglDestroyContext", destroy_context);
  }
  // Mesa's surfaceless display, then one per graphics device.
  std::vector<void*> Displays() const {
    using GetDisplay = void*(unsigned, void*, const int*);
    using QueryDevices = unsigned(int, void**, int*);
    std::vector<void*> displays;
    auto* get = reinterpret_cast<GetDisplay*>(get_proc_address("eglGetPlatformDisplayEXT"));
    if (get == nullptr) return displays;
    if (void* display = get(kEglSurfacelessMesa, nullptr, nullptr)) displays.push_back(display);
    auto* query = reinterpret_cast<QueryDevices*>(get_proc_address("eglQueryDevicesEXT"));
    std::array<void*, kMaxDevices> devices{};
    int count = 0;
    if (query == nullptr || query(kMaxDevices, devices.data(), &count) == 0) return displays;
    for (int i = 0; i < count; ++i) {
      void* display = get(kEglPlatformDevice, devices[static_cast<std::size_t>(i)], nullptr);
      if (display != nullptr) displays.push_back(display);
    }
    return displays;
  }
};

class EglGlContext : public GlContext {
 public:
  EglGlContext(const Egl& functions, void* display, void* context)
      : functions_(functions), display_(display), context_(context) {}
  EglGlContext(const EglGlContext&) = delete;
  EglGlContext& operator=(const EglGlContext&) = delete;
  ~EglGlContext() override {
    functions_.make_current(display_, nullptr, nullptr, nullptr);
    functions_.destroy_context(display_, context_);
  }
  void MakeCurrent() override { Current(); }
  bool Current() { return functions_.make_current(display_, nullptr, nullptr, context_) != 0; }
  const char* name() const override { return "EGL"; }

 private:
  const Egl& functions_;
  void* display_;
  void* context_;
};

std::unique_ptr<GlContext> MakeEgl(std::string& why_not) {
  static Egl functions;
  if (!functions.library.loaded()) {
    why_not = functions.library.error();
    return nullptr;
  }
  why_not = "EGL gives no context";
  if (!functions.Load()) return nullptr;
  for (void* display : functions.Displays()) {
    int major = 0;
    int minor = 0;
    if (functions.initialize(display, &major, &minor) == 0) continue;
    if (functions.bind_api(kEglOpenGlApi) == 0) continue;
    const std::array<int, 5> wanted = {kEglSurfaceType, kEglPbufferBit, kEglRenderableType,
                                       kEglOpenGlBit, kEglNone};
    void* config = nullptr;
    int count = 0;
    if (functions.choose_config(display, wanted.data(), &config, 1, &count) == 0 || count == 0) {
      continue;
    }
    void* context = functions.create_context(display, config, nullptr, nullptr);
    if (context == nullptr) continue;
    auto made = std::make_unique<EglGlContext>(functions, display, context);
    if (made->Current()) return made;
  }
  return nullptr;
}

using Maker = std::unique_ptr<GlContext> (*)(std::string& why_not);

}  // namespace

std::unique_ptr<GlContext> MakeGlContext(std::string& why_not) {
  static Maker chosen = nullptr;
  if (chosen != nullptr) return chosen(why_not);
  const char* setting = std::getenv("MUJOCO_GL");
  const std::string_view wanted = setting == nullptr ? "" : setting;
  if (wanted == "disable" || wanted == "off") {
    why_not = StrCat("MUJOCO_GL=", wanted);
    return nullptr;
  }
  // EGL's library would be in OSMesa's way, so it comes second
  std::vector<Maker> makers;
  if (wanted != "egl") makers.push_back(MakeOsMesa);
  if (wanted != "osmesa") makers.push_back(MakeEgl);
  std::string reasons;
  for (const Maker maker : makers) {
    std::string reason;
    auto context = maker(reason);
    if (context != nullptr) {
      chosen = maker;
      return context;
    }
    reasons += StrCat(reasons.empty() ? "" : "; ", reason);
  }
  why_not = reasons;
  return nullptr;
}

}  // namespace msrl
