/*
 * A client that measures its own connects. Each line on standard input is a count; for each it makes so many times
 * socket + connect + close to ADDRESS PORT and answers one line: errno of the last, then p50 and p99 in nanoseconds.
 * PEER is the descriptor of the listener at the other end, which does not block: it is emptied between the connects, since a
 * server that does so on another CPU doubles, now and then, what a connect takes. PAUSE: nanoseconds between two connects.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST 200000

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	long long x = *(const long long *)a, y = *(const long long *)b;
	return x < y ? -1 : x > y;
}

/* Connects between two times that the peer is emptied: a fraction of the queue that it has (4096). */
#define BETWEEN 250

static void empty(int peer)
{
	int c;
	while (peer >= 0 && (c = accept(peer, 0, 0)) >= 0)
		close(c);
}

int main(int argc, char **argv)
{
	static long long took[MOST];
	struct linger reset = {1, 0}; /* no TIME_WAIT: the ports would run out */
	struct sockaddr_in where = {.sin_family = AF_INET};
	int peer = argc > 3 ? atoi(argv[3]) : -1, count, i, problem = 0;
	long long pause = argc > 4 ? atoll(argv[4]) : 0, start;

	if (argc < 3)
		return 2;
	where.sin_port = htons(atoi(argv[2]));
	inet_pton(AF_INET, argv[1], &where.sin_addr);
	while (scanf("%d", &count) == 1 && count > 0 && count <= MOST) {
		for (i = 0; i < count; i++) {
			int s;
			for (start = now(); now() - start < pause;)
				;
			start = now();
			s = socket(AF_INET, SOCK_STREAM, 0);
			setsockopt(s, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
			problem = connect(s, (void *)&where, sizeof where) ? errno : 0;
			close(s);
			took[i] = now() - start;
			if (i % BETWEEN == 0)
				empty(peer);
		}
		empty(peer);
		qsort(took, count, sizeof *took, by_size);
		printf("%d %lld %lld\n", problem, took[count / 2], took[count * 99 / 100]);
		fflush(stdout);
	}
	return 0;
}
