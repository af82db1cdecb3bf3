/* A server whose every write is known: OpenAI completions and chat, streamed on a schedule, stamped before each write.
 *
 *   server LOG [--port N] [--ttft-us N] [--itl-us N] [--jitter PERCENT] [--lockstep] [--stall-one-in N --stall-us N]
 *          [--tokens-per-event N] [--events-per-write N] [--prompt-tokens N] [--tls PEM]
 *          [--fault http500|short|error|cut --fault-one-in N] [--address IPV4]
 *
 * It prints "listening on PORT" and serves until SIGTERM or SIGINT; then it writes LOG (see log.py) and exits with 0.
 * Truth is what was written and when, never what was planned: both stand in the log, so that the server's own lateness
 * is not charged to a client. One thread: epoll, and a heap of streams by the time of their next chunk.
 *
 * It has no tokenizer: a prompt of ids has as many tokens as ids, a text counts as one, unless --prompt-tokens says how
 * many tokens every prompt has.
 *
 * With --tls, PEM has key and certificate. OpenSSL is loaded when it is needed, so that none is needed to build this. A
 * chunk is encrypted in memory first; its stamp is taken just before the encrypted bytes are written.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST_FDS = 65536, ID_BYTES = 64, CHUNK_BYTES = 1024, BURST = 256, SOCKETS_WHEN_BUSY = 64 };
static const size_t MOST_EVENTS = 1u << 26, MOST_REQUESTS = 1u << 20;

struct request { /* one in the log; all times CLOCK_MONOTONIC nanoseconds */
    char id[ID_BYTES];
    int64_t arrived_ns; /* its last byte came in, by the kernel's stamp: what it waits for us to read it is our time */
    int32_t prompt_tokens, asked_tokens;
};

struct event {
    uint32_t request, tokens; /* tokens in this write */
    int64_t due_ns, written_ns;
};

struct stream {
    int fd;
    void *tls, *from_client, *to_client; /* with --tls: the session and its two buffers */
    char *in; /* what was read of the next request */
    size_t in_bytes, in_room;
    int64_t last_came_ns; /* the last byte of what was read */
    char *pending; /* what the socket would not take */
    size_t pending_bytes;
    bool is_chat, wants_usage, wants_ids, closes;
    uint32_t request;
    int32_t asked, sent, breaks_at; /* tokens; an answer with a fault ends at the last of these, others at none */
    int64_t due_ns;
    int heap_at; /* -1: not due */
    char chunk[CHUNK_BYTES]; /* one content chunk, written out beforehand */
    int chunk_bytes;
};

enum fault { NONE, HTTP500, SHORT, ERROR, CUT };
static const char *const FAULTS[] = {"", "http500", "short", "error", "cut"};
static struct { enum fault fault; int fault_one_in; int64_t ttft_ns, itl_ns, stall_ns; int jitter, stall_one_in, tokens, events, prompt_tokens; bool lockstep; } mode = {
    .fault_one_in = 1, .ttft_ns = 200000000, .itl_ns = 20000000, .tokens = 1, .events = 1};
static struct stream *streams[MOST_FDS], *heap[MOST_FDS];
static int heap_count, epoll_fd;
static struct request *requests;
static struct event *events;
static size_t request_count, event_count, generated, prompted, finished;
static volatile sig_atomic_t is_over;

/* ---- TLS, by OpenSSL's own names; the signatures are those of version 3 ---- */

static struct {
    void *context;
    void *(*new)(void *), *(*bio)(const void *);
    const void *(*mem)(void);
    void (*set_bio)(void *, void *, void *), (*accept_state)(void *), (*free)(void *);
    int (*handshake)(void *), (*read)(void *, void *, int), (*write)(void *, const void *, int);
    int (*bio_read)(void *, void *, int), (*bio_write)(void *, const void *, int), (*error)(void *, int);
} ssl;

static void die(const char *what) {
    fprintf(stderr, "truth server: %s: %s\n", what, errno ? strerror(errno) : "wrong");
    exit(2);
}

static void *symbol(const char *name) {
    static const char *const files[] = {"libssl.so.3", "libssl.so.1.1", "libssl.so"};
    static void *library;
    for (size_t i = 0; library == NULL && i < sizeof files / sizeof *files; i++) library = dlopen(files[i], RTLD_NOW | RTLD_GLOBAL);
    errno = 0;
    if (library == NULL) die("TLS needs OpenSSL: libssl.so.3 is not installed");
    void *found = dlsym(library, name);
    if (found == NULL) found = dlsym(RTLD_DEFAULT, name);
    if (found == NULL) die(name);
    return found;
}

static void use_tls(const char *pem) {
    const void *(*method)(void) = symbol("TLS_server_method");
    void *(*context)(const void *) = symbol("SSL_CTX_new");
    int (*certificate)(void *, const char *) = symbol("SSL_CTX_use_certificate_chain_file");
    int (*key)(void *, const char *, int) = symbol("SSL_CTX_use_PrivateKey_file");
    ssl.new = symbol("SSL_new");
    ssl.bio = symbol("BIO_new");
    ssl.mem = symbol("BIO_s_mem");
    ssl.set_bio = symbol("SSL_set_bio");
    ssl.accept_state = symbol("SSL_set_accept_state");
    ssl.free = symbol("SSL_free");
    ssl.handshake = symbol("SSL_do_handshake");
    ssl.read = symbol("SSL_read");
    ssl.write = symbol("SSL_write");
    ssl.bio_read = symbol("BIO_read");
    ssl.bio_write = symbol("BIO_write");
    ssl.error = symbol("SSL_get_error");
    ssl.context = context(method());
    errno = 0;
    if (ssl.context == NULL || certificate(ssl.context, pem) != 1 || key(ssl.context, pem, 1) != 1) die(pem);
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* ---- the heap: streams by their next due time ---- */

static void put(int at, struct stream *s) { heap[at] = s; s->heap_at = at; }

static void sift_up(int at) {
    struct stream *s = heap[at];
    for (; at > 0 && heap[(at - 1) / 2]->due_ns > s->due_ns; at = (at - 1) / 2) put(at, heap[(at - 1) / 2]);
    put(at, s);
}

static void sift_down(int at) {
    struct stream *s = heap[at];
    for (int child; (child = 2 * at + 1) < heap_count; at = child) {
        if (child + 1 < heap_count && heap[child + 1]->due_ns < heap[child]->due_ns) child++;
        if (heap[child]->due_ns >= s->due_ns) break;
        put(at, heap[child]);
    }
    put(at, s);
}

static void schedule(struct stream *s) { put(heap_count++, s); sift_up(s->heap_at); }

static void unschedule(struct stream *s) {
    int at = s->heap_at;
    if (at < 0) return;
    s->heap_at = -1;
    struct stream *last = heap[--heap_count];
    if (last == s) return;
    put(at, last);
    sift_up(at);
    sift_down(last->heap_at);
}

/* ---- what was asked: a JSON object's top-level keys, so that no prompt can imitate one ---- */

static const char *skip_string(const char *p, const char *end) {
    for (p++; p < end && *p != '"'; p++) p += *p == '\\';
    return p + 1;
}

/* The end of the value at p; counts the elements of an array of scalars. */
static const char *skip_value(const char *p, const char *end, int *elements) {
    int depth = 0, commas = 0, any = 0;
    for (; p < end; p++) {
        if (*p == '"') { p = skip_string(p, end) - 1; any = 1; }
        else if (*p == '[' || *p == '{') depth++;
        else if (*p == ']' || *p == '}') { if (--depth < 0) break; if (depth == 0) { p++; break; } }
        else if (*p == ',') { if (depth == 0) break; commas += depth == 1; }
        else if (*p != ' ' && *p != '\n') any = 1;
    }
    *elements = any ? commas + 1 : 0;
    return p;
}

static bool is_key(const char *key, size_t bytes, const char *name) {
    return bytes == strlen(name) && memcmp(key, name, bytes) == 0;
}

static void read_body(struct stream *s, const char *p, const char *end) {
    struct request *r = &requests[s->request];
    bool is_stream = false;
    s->wants_usage = s->wants_ids = false;
    r->asked_tokens = 16; /* what OpenAI's completions give when nothing is asked */
    for (p = memchr(p, '{', (size_t)(end - p)) ?: end; p < end;) {
        const char *key = memchr(p, '"', (size_t)(end - p));
        if (key == NULL) break;
        const char *key_end = skip_string(key, end), *value = key_end;
        size_t bytes = (size_t)(key_end - key) - 2;
        while (value < end && (*value == ':' || *value == ' ')) value++;
        int elements;
        p = skip_value(value, end, &elements);
        if (is_key(key + 1, bytes, "max_tokens") || is_key(key + 1, bytes, "max_completion_tokens"))
            r->asked_tokens = atoi(value);
        else if (is_key(key + 1, bytes, "prompt")) r->prompt_tokens = elements;
        else if (is_key(key + 1, bytes, "stream")) is_stream = *value == 't';
        else if (is_key(key + 1, bytes, "stream_options")) s->wants_usage = true;
        else if (is_key(key + 1, bytes, "return_token_ids")) s->wants_ids = *value == 't';
    }
    if (mode.prompt_tokens) r->prompt_tokens = mode.prompt_tokens;
    if (!is_stream || r->asked_tokens < 1) r->asked_tokens = 0;
}

/* ---- writing ---- */

static void watch(struct stream *s, uint32_t mask) {
    struct epoll_event e = {.events = mask, .data.fd = s->fd};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_MOD, s->fd, &e)) die("epoll_ctl");
}

static void drop(struct stream *s) {
    unschedule(s);
    close(s->fd);
    if (s->tls) ssl.free(s->tls);
    streams[s->fd] = NULL;
    free(s->in);
    free(s->pending);
    free(s);
}

/* Writes all of it, now or when the socket takes it; false if the connection is lost, and then the stream is gone. */
static bool put_raw(struct stream *s, const char *text, size_t bytes) {
    ssize_t sent = s->pending ? 0 : send(s->fd, text, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) { drop(s); return false; }
    if (sent < 0) sent = 0;
    if ((size_t)sent == bytes) return true;
    size_t rest = bytes - (size_t)sent;
    s->pending = realloc(s->pending, s->pending_bytes + rest);
    if (s->pending == NULL) die("memory");
    memcpy(s->pending + s->pending_bytes, text + sent, rest);
    s->pending_bytes += rest;
    watch(s, EPOLLIN | EPOLLOUT);
    return true;
}

/* Encrypts into a buffer where there is TLS, so that the next call only writes. */
static size_t sealed(struct stream *s, const char *text, size_t bytes, char *to, size_t room) {
    if (ssl.write(s->tls, text, (int)bytes) != (int)bytes) die("SSL_write");
    int got = ssl.bio_read(s->to_client, to, (int)room);
    return got > 0 ? (size_t)got : 0;
}

static bool put_out(struct stream *s, const char *text, size_t bytes) {
    char cipher[24 * CHUNK_BYTES];
    if (s->tls == NULL) return put_raw(s, text, bytes);
    return put_raw(s, cipher, sealed(s, text, bytes, cipher, sizeof cipher));
}

static void put_rest(struct stream *s) {
    ssize_t sent = send(s->fd, s->pending, s->pending_bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) { drop(s); return; }
    s->pending_bytes -= (size_t)sent;
    memmove(s->pending, s->pending + sent, s->pending_bytes);
    if (s->pending_bytes) return;
    free(s->pending);
    s->pending = NULL;
    watch(s, EPOLLIN);
}

static int framed(char *to, const char *format, ...) {
    char data[CHUNK_BYTES / 2];
    va_list list;
    va_start(list, format);
    int bytes = vsnprintf(data, sizeof data, format, list);
    va_end(list);
    return sprintf(to, "%x\r\ndata: %s\n\n\r\n", bytes + 8, data);
}

/* A content chunk of so many tokens, in vLLM's shape. */
static int content(struct stream *s, char *to, int tokens, const char *finish) {
    char text[128] = "", ids[256] = "";
    for (int i = 0; i < tokens && i < 16; i++) strcat(text, "t"); /* one token where every byte is one */
    if (s->wants_ids) {
        strcpy(ids, ",\"token_ids\":[");
        for (int i = 0; i < tokens && i < 16; i++) strcat(ids, i ? ",17" : "17");
        strcat(ids, "]");
    }
    if (s->is_chat)
        return framed(to, "{\"id\":\"chatcmpl-%08x\",\"object\":\"chat.completion.chunk\",\"created\":1760000000,"
            "\"model\":\"truth\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%s\"},\"logprobs\":null,"
            "\"finish_reason\":%s%s}]}", s->request, text, finish, ids);
    return framed(to, "{\"id\":\"cmpl-%08x\",\"object\":\"text_completion\",\"created\":1760000000,\"model\":\"truth\","
        "\"choices\":[{\"index\":0,\"text\":\"%s\",\"logprobs\":null,\"finish_reason\":%s,\"stop_reason\":null,"
        "\"prompt_token_ids\":null%s}],\"usage\":null}", s->request, text, finish, ids);
}

/* The first chunk of a chat, which vLLM writes together with the first token. */
static int role(struct stream *s, char *to) {
    return framed(to, "{\"id\":\"chatcmpl-%08x\",\"object\":\"chat.completion.chunk\",\"created\":1760000000,"
        "\"model\":\"truth\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,"
        "\"finish_reason\":null}]}", s->request);
}

static int ending(struct stream *s, char *to) {
    struct request *r = &requests[s->request];
    int bytes = 0;
    if (s->wants_usage)
        bytes += framed(to, "{\"id\":\"%scmpl-%08x\",\"object\":\"%s\",\"created\":1760000000,\"model\":\"truth\","
            "\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"total_tokens\":%d,\"completion_tokens\":%d}}",
            s->is_chat ? "chat" : "", s->request, s->is_chat ? "chat.completion.chunk" : "text_completion",
            r->prompt_tokens, r->prompt_tokens + s->asked, s->asked);
    bytes += framed(to + bytes, "[DONE]");
    return bytes + sprintf(to + bytes, "0\r\n\r\n");
}

static uint32_t hash(uint32_t a, uint32_t b) {
    uint64_t x = (a + 1ull) * 0x9E3779B97F4A7C15ull ^ (b + 1ull) * 0xC2B2AE3D27D4EB4Full;
    x ^= x >> 31; x *= 0xD6E8FEB86659FD93ull; x ^= x >> 32;
    return (uint32_t)x;
}

/* When the next write is due: the same for the same request and token in every run. */
static int64_t next_due(struct stream *s, int64_t last, int64_t gap) {
    uint32_t dice = hash(s->request, (uint32_t)s->sent);
    if (mode.jitter) gap += gap * ((int64_t)(dice % (2 * (uint32_t)mode.jitter + 1)) - mode.jitter) / 100;
    if (mode.stall_one_in && dice / 1024 % (uint32_t)mode.stall_one_in == 0) gap += mode.stall_ns;
    int64_t due = last + gap;
    if (mode.lockstep) due = (due + mode.itl_ns - 1) / mode.itl_ns * mode.itl_ns;
    return due;
}

static void next_request(struct stream *s);

static void go_on(struct stream *s) {
    unschedule(s);
    if (s->closes) drop(s);
    else next_request(s);
}

/* End an answer as its fault wants: by an error object inside the 200, or by a lost connection. */
static void fail(struct stream *s) {
    char out[CHUNK_BYTES];
    if (mode.fault == CUT) { drop(s); return; }
    int bytes = framed(out, "{\"error\":{\"message\":\"EngineCore encountered an issue.\",\"type\":\"InternalServerError\","
        "\"param\":null,\"code\":500}}");
    bytes += framed(out + bytes, "[DONE]");
    bytes += sprintf(out + bytes, "0\r\n\r\n");
    if (put_out(s, out, (size_t)bytes)) go_on(s);
}

/* Write the stream's next events, stamped first; at its end, look for the next request on the connection. */
static void emit(struct stream *s) {
    char out[16 * CHUNK_BYTES];
    int bytes = 0;
    uint32_t tokens = 0;
    int64_t due = s->due_ns;
    if (s->breaks_at && s->sent >= s->breaks_at) { fail(s); return; }
    if (s->is_chat && s->sent == 0) bytes += role(s, out);
    for (int i = 0; i < mode.events && s->sent < s->asked; i++) {
        int count = s->asked - s->sent < mode.tokens ? s->asked - s->sent : mode.tokens;
        bool is_last = s->sent + count == s->asked;
        bool is_whole = s->asked == requests[s->request].asked_tokens;
        if (is_last) bytes += content(s, out + bytes, count, is_whole ? "\"length\"" : "\"stop\"");
        else { memcpy(out + bytes, s->chunk, (size_t)s->chunk_bytes); bytes += s->chunk_bytes; }
        s->sent += count;
        tokens += (uint32_t)count;
    }
    bool is_done = s->sent >= s->asked;
    if (is_done) bytes += ending(s, out + bytes);
    if (event_count == MOST_EVENTS) { errno = 0; die("the log is full"); }
    char cipher[24 * CHUNK_BYTES], *whole = out;
    size_t whole_bytes = (size_t)bytes;
    if (s->tls) { whole_bytes = sealed(s, out, (size_t)bytes, cipher, sizeof cipher); whole = cipher; }
    events[event_count++] = (struct event){s->request, tokens, due, now_ns()};
    generated += tokens;
    if (!put_raw(s, whole, whole_bytes)) return;
    if (is_done) {
        finished++;
        go_on(s);
        return;
    }
    s->due_ns = next_due(s, due, mode.itl_ns * (mode.tokens * mode.events));
    sift_down(s->heap_at);
}

/* ---- requests ---- */

static void answer(struct stream *s, const char *status, const char *type, const char *body) {
    char text[4096];
    int bytes = snprintf(text, sizeof text, "HTTP/1.1 %s\r\ncontent-type: %s\r\ncontent-length: %zu\r\n\r\n%s", status, type,
                         strlen(body), body);
    put_out(s, text, (size_t)bytes);
}

static void metrics(struct stream *s) {
    char text[2048];
    const char *label = "{engine=\"0\",model_name=\"truth\"}";
    snprintf(text, sizeof text,
        "vllm:num_requests_running%s %d\nvllm:num_requests_waiting%s 0\nvllm:num_preemptions_total%s 0\n"
        "vllm:prompt_tokens_total%s %zu\nvllm:generation_tokens_total%s %zu\n"
        "vllm:request_success_total{engine=\"0\",finished_reason=\"length\",model_name=\"truth\"} %zu\n",
        label, heap_count, label, label, label, prompted, label, generated, finished);
    answer(s, "200 OK", "text/plain; version=0.0.4", text);
}

static void begin(struct stream *s, const char *head, const char *body, const char *end, bool is_chat) {
    if (request_count == MOST_REQUESTS) { errno = 0; die("too many requests"); }
    struct request *r = &requests[request_count];
    s->request = (uint32_t)request_count;
    s->is_chat = is_chat;
    const char *id = strcasestr(head, "\nx-request-id:");
    if (id != NULL && id < body) sscanf(id + 14, " %63[^\r\n]", r->id);
    const char *closes = strcasestr(head, "\nconnection: close");
    s->closes = closes != NULL && closes < body;
    read_body(s, body, end);
    if (r->asked_tokens == 0) { answer(s, "400 Bad Request", "text/plain", "only streams of at least one token"); return; }
    request_count++;
    prompted += (size_t)r->prompt_tokens;
    s->asked = r->asked_tokens;
    s->sent = s->breaks_at = 0;
    if (mode.fault && request_count % (size_t)mode.fault_one_in == 0) {
        int32_t half = s->asked > 1 ? s->asked / 2 : 1;
        if (mode.fault == SHORT) s->asked = half;
        if (mode.fault == ERROR || mode.fault == CUT) s->breaks_at = half;
        if (mode.fault == HTTP500) {
            r->arrived_ns = s->last_came_ns;
            answer(s, "500 Internal Server Error", "application/json",
                   "{\"error\":{\"message\":\"EngineCore encountered an issue.\",\"type\":\"InternalServerError\",\"code\":500}}");
            return;
        }
    }
    s->chunk_bytes = content(s, s->chunk, mode.tokens, "null");
    r->arrived_ns = s->last_came_ns;
    static const char begun[] = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
                                "transfer-encoding: chunked\r\n\r\n";
    if (!put_out(s, begun, sizeof begun - 1)) return;
    s->due_ns = next_due(s, r->arrived_ns, mode.ttft_ns);
    schedule(s);
}

/* Serve the request at the front of what was read, if it is whole. */
static void next_request(struct stream *s) {
    int fd = s->fd;
    s->in[s->in_bytes] = 0;
    char *body = strstr(s->in, "\r\n\r\n");
    if (body == NULL) return;
    body += 4;
    char *length = strcasestr(s->in, "\ncontent-length:");
    size_t body_bytes = length != NULL && length < body ? strtoul(length + 16, NULL, 10) : 0;
    size_t all = (size_t)(body - s->in) + body_bytes;
    if (s->in_bytes < all) return;
    if (!strncmp(s->in, "POST /v1/completions ", 21)) begin(s, s->in, body, body + body_bytes, false);
    else if (!strncmp(s->in, "POST /v1/chat/completions ", 26)) begin(s, s->in, body, body + body_bytes, true);
    else if (!strncmp(s->in, "GET /metrics ", 13)) metrics(s);
    else if (!strncmp(s->in, "GET /health ", 12)) answer(s, "200 OK", "text/plain", "");
    else if (!strncmp(s->in, "GET /version ", 13)) answer(s, "200 OK", "application/json", "{\"version\":\"truth\"}");
    else if (!strncmp(s->in, "GET /v1/models ", 15))
        answer(s, "200 OK", "application/json", "{\"object\":\"list\",\"data\":[{\"id\":\"truth\",\"object\":\"model\","
               "\"created\":1760000000,\"owned_by\":\"truth\",\"root\":\"truth\",\"max_model_len\":1000000}]}");
    else answer(s, "404 Not Found", "text/plain", "");
    if (streams[fd] != s) return;
    s->in_bytes -= all;
    memmove(s->in, s->in + all, s->in_bytes);
}

/* When the bytes of a read came in, on the monotonic clock; now, where the kernel does not say. */
static int64_t came_ns(struct msghdr *message) {
    struct timespec wall, stamp;
    int64_t now = now_ns();
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SO_TIMESTAMPNS) continue;
        memcpy(&stamp, CMSG_DATA(c), sizeof stamp);
        clock_gettime(CLOCK_REALTIME, &wall);
        return now - ((wall.tv_sec - stamp.tv_sec) * 1000000000LL + wall.tv_nsec - stamp.tv_nsec);
    }
    return now;
}

/* Decrypts what came into s->in; goes on with the handshake first. False if the connection is lost. */
static bool open_up(struct stream *s, const char *cipher, size_t bytes) {
    char out[16384];
    ssl.bio_write(s->from_client, cipher, (int)bytes);
    int done = ssl.handshake(s->tls);
    for (int got; (got = ssl.bio_read(s->to_client, out, sizeof out)) > 0;)
        if (!put_raw(s, out, (size_t)got)) return false;
    if (done != 1) {
        if (ssl.error(s->tls, done) == 2) return true; /* SSL_ERROR_WANT_READ */
        drop(s);
        return false;
    }
    for (;;) {
        if (s->in_room - s->in_bytes < sizeof out) {
            s->in_room += 262144;
            s->in = realloc(s->in, s->in_room + 1);
            if (s->in == NULL) die("memory");
        }
        int got = ssl.read(s->tls, s->in + s->in_bytes, (int)(s->in_room - s->in_bytes));
        if (got <= 0) return true;
        s->in_bytes += (size_t)got;
    }
}

static void receive(struct stream *s) {
    static char cipher[65536];
    char control[64];
    if (s->in_room - s->in_bytes < 65536) {
        s->in_room += 262144;
        s->in = realloc(s->in, s->in_room + 1);
        if (s->in == NULL) die("memory");
    }
    struct iovec room = {s->in + s->in_bytes, s->in_room - s->in_bytes};
    if (s->tls) room = (struct iovec){cipher, sizeof cipher};
    struct msghdr message = {.msg_iov = &room, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t got = recvmsg(s->fd, &message, 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) { drop(s); return; }
    s->last_came_ns = came_ns(&message);
    if (s->tls == NULL) s->in_bytes += (size_t)got;
    else if (!open_up(s, cipher, (size_t)got)) return;
    if (s->heap_at < 0 && s->in_bytes) next_request(s);
}

static void welcome(int listener) {
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
        if (fd >= MOST_FDS) { close(fd); continue; }
        int one = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
        struct stream *s = calloc(1, sizeof *s);
        if (s == NULL) die("memory");
        s->fd = fd;
        s->heap_at = -1;
        s->in_room = 16384;
        s->in = malloc(s->in_room + 1);
        if (ssl.context) {
            s->tls = ssl.new(ssl.context);
            s->from_client = ssl.bio(ssl.mem());
            s->to_client = ssl.bio(ssl.mem());
            ssl.set_bio(s->tls, s->from_client, s->to_client);
            ssl.accept_state(s->tls);
        }
        streams[fd] = s;
        struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e)) die("epoll_ctl");
        receive(s); /* its request may have come before it was accepted, and nothing due later goes out before it */
    }
}

/* ---- main ---- */

static void serve(int listener) {
    struct epoll_event ready[1024];
    while (!is_over) {
        int64_t wait = heap_count ? heap[0]->due_ns - now_ns() : 50000000;
        if (wait < 0) wait = 0;
        if (wait > 50000000) wait = 50000000;
        struct timespec t = {0, wait};
        int most = wait == 0 ? SOCKETS_WHEN_BUSY : 1024;
        int count = epoll_pwait2(epoll_fd, ready, most, &t, NULL);
        if (count < 0 && errno != EINTR) die("epoll_pwait2");
        int64_t read_ns = now_ns(); /* what is due later waits: a request that came since may be due before it */
        for (int i = 0; i < count; i++) {
            int fd = ready[i].data.fd;
            if (fd == listener) { welcome(listener); continue; }
            if (streams[fd] && ready[i].events & EPOLLOUT) put_rest(streams[fd]);
            if (streams[fd] && ready[i].events & ~(uint32_t)EPOLLOUT) receive(streams[fd]);
        }
        for (int i = 0; i < BURST && heap_count && heap[0]->due_ns <= read_ns; i++) emit(heap[0]);
    }
}

static void write_log(const char *path) {
    FILE *f = fopen(path, "wb");
    if (f == NULL) die(path);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                 (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    fprintf(f, "{\"requests\":%zu,\"events\":%zu,\"cpu_s\":%.6f}\n", request_count, event_count, cpu);
    if (fwrite(requests, sizeof *requests, request_count, f) != request_count ||
        fwrite(events, sizeof *events, event_count, f) != event_count || fclose(f)) die(path);
}

static void stop(int number) { (void)number; is_over = 1; }

static int number(char **argv, int *at) {
    char *end, *text = argv[++*at];
    long found = text ? strtol(text, &end, 10) : -1;
    if (found < 0 || *end) { errno = 0; fprintf(stderr, "%s: ", argv[*at - 1]); die("needs a whole number, not negative"); }
    return (int)found;
}

static enum fault fault(char **argv, int *at) {
    const char *name = argv[++*at];
    for (int i = HTTP500; i <= CUT; i++)
        if (name && !strcmp(name, FAULTS[i])) return (enum fault)i;
    errno = 0;
    fprintf(stderr, "--fault: ");
    die("needs http500, short, error or cut");
    return NONE;
}

static const char *address = "127.0.0.1";

static int read_options(int argc, char **argv) {
    int port = 0;
    for (int i = 2; i < argc; i++) {
        if (!strcmp(argv[i], "--port")) port = number(argv, &i);
        else if (!strcmp(argv[i], "--ttft-us")) mode.ttft_ns = number(argv, &i) * 1000LL;
        else if (!strcmp(argv[i], "--itl-us")) mode.itl_ns = number(argv, &i) * 1000LL;
        else if (!strcmp(argv[i], "--jitter")) mode.jitter = number(argv, &i);
        else if (!strcmp(argv[i], "--stall-one-in")) mode.stall_one_in = number(argv, &i);
        else if (!strcmp(argv[i], "--stall-us")) mode.stall_ns = number(argv, &i) * 1000LL;
        else if (!strcmp(argv[i], "--tokens-per-event")) mode.tokens = number(argv, &i);
        else if (!strcmp(argv[i], "--events-per-write")) mode.events = number(argv, &i);
        else if (!strcmp(argv[i], "--prompt-tokens")) mode.prompt_tokens = number(argv, &i);
        else if (!strcmp(argv[i], "--lockstep")) mode.lockstep = true;
        else if (!strcmp(argv[i], "--address") && argv[i + 1]) address = argv[++i];
        else if (!strcmp(argv[i], "--tls") && argv[i + 1]) use_tls(argv[++i]);
        else if (!strcmp(argv[i], "--fault-one-in")) mode.fault_one_in = number(argv, &i);
        else if (!strcmp(argv[i], "--fault")) mode.fault = fault(argv, &i);
        else { errno = 0; fprintf(stderr, "%s: ", argv[i]); die("unknown option"); }
    }
    if (mode.fault_one_in < 1) { errno = 0; die("--fault-one-in must be 1 or more"); }
    if (mode.tokens < 1 || mode.tokens > 16 || mode.events < 1 || mode.events > 8 || mode.itl_ns < 1000) {
        errno = 0;
        die("tokens per event must be 1 to 16, events per write 1 to 8, and the gap 1 us or more");
    }
    return port;
}

static void *reserve(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) die("memory");
    return at;
}

int main(int argc, char **argv) {
    if (argc < 2) { errno = 0; die("usage: server LOG [options]"); }
    int port = read_options(argc, argv);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    prctl(PR_SET_TIMERSLACK, 1);
    requests = reserve(MOST_REQUESTS * sizeof *requests);
    events = reserve(MOST_EVENTS * sizeof *events);
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, address, &here.sin_addr) != 1) { errno = 0; die("--address needs an IPv4 address"); }
    socklen_t bytes = sizeof here;
    if (bind(listener, (struct sockaddr *)&here, bytes) || listen(listener, 65535)) die("cannot listen");
    getsockname(listener, (struct sockaddr *)&here, &bytes);
    epoll_fd = epoll_create1(0);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = listener};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &e)) die("epoll_ctl");
    printf("listening on %d\n", ntohs(here.sin_port));
    fflush(stdout);
    serve(listener);
    write_log(argv[1]);
    return 0;
}
